"""Replaced token detection (Clark's thesis, 5.1.5 and algorithm 2).

    L_RTD = mean over tokens t of
            -1[x~_t = x_t] log(1 - D(x~)_t) - 1[x~_t != x_t] log D(x~)_t
    L     = L_MLM + 50 L_RTD

x is the text, x~ the text with the generator's samples, and D(x~)_t the probability
that position t was replaced. Where the generator happens to sample the original
token, the position counts as original. The thesis does not give the weight 50; it is
the released code's.
"""

from keras import ops


def replaced_labels(original_ids, corrupted_ids):
    """Returns float32 `[batch, length]`: 1 where the token is not the original."""
    return ops.cast(original_ids != corrupted_ids, "float32")


def replaced_token_detection_loss(logits, replaced):
    """Binary cross-entropy at each position.

    Args:
        logits: `[batch, length]`, of "this token was replaced".
        replaced: float `[batch, length]`, 1 where it was.

    Returns:
        float32 `[batch, length]`.

    >>> import numpy as np
    >>> loss = replaced_token_detection_loss(np.zeros((1, 2)), np.array([[0.0, 1.0]]))
    >>> bool(np.allclose(loss, np.log(2)))
    True
    """
    logits = ops.cast(logits, "float32")
    # log(1 + e^z) - y z, the cross-entropy with sigmoid(z), without overflow
    return ops.softplus(logits) - logits * ops.cast(replaced, "float32")
