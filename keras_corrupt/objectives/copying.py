"""The copy mechanism (Clark's thesis, 5.4.3; Meng et al., 2021, equation 2).

    p(x|h_t) = 1[x = x~_t] p_copy(1|h_t) + p_copy(0|h_t) softmax(x|h_t)

x~ is the text with the generator's samples, h_t what the network that reads it makes of
position t, and p_copy(1|h_t) the probability that x~_t is the original token.
"""

from keras import ops

#: Stands for the logarithm of 0, and has no infinite gradient.
LOG_ZERO = -1e30


def original_log_probability(
    log_softmax, replaced_logits, unchanged, stop_gradient=True
):
    """Logarithm of the probability of the original token, `p_LM(x_t|h_t)`.

    Args:
        log_softmax: `[...]`, the logarithm of the softmax's probability of it.
        replaced_logits: `[...]`, logits of "this token was replaced", of p_copy(0).
        unchanged: Boolean `[...]`, whether the token is the original.
        stop_gradient: Whether the probability of copying gets no gradient.

    Returns:
        float32 `[...]`.

    >>> import numpy as np
    >>> args = np.log([0.2, 0.2]), np.zeros(2), np.array([True, False])
    >>> np.exp(original_log_probability(*args)).round(2).tolist()  # 1/2 + 1/2 * 0.2
    [0.6000000238418579, 0.10000000149011612]
    """
    logits = ops.cast(replaced_logits, "float32")
    if stop_gradient:
        logits = ops.stop_gradient(logits)
    written = ops.log_sigmoid(logits) + ops.cast(log_softmax, "float32")
    copied = ops.where(unchanged, ops.log_sigmoid(-logits), LOG_ZERO)
    return ops.logaddexp(copied, written)
