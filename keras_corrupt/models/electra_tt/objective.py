r"""Probabilities of tokens from ELECTRA-TT (Clark's thesis, 5.4.5).

    p(x_t | x_\t) = k q(x_t | x_\t) D(x)_t / (n (1 - D(x)_t))

D is the probability that a token is the data's, and k of n tokens are sampled from q.
So a discriminator would have it that knew p: it learns what Electric's learns, of
another form. The estimate is not normalised.

It learns from what ELECTRA learns from (`replaced_token_detection/objective.py`), with
a two-tower model as generator (`two_tower/objective.py`).
"""

from keras import ops


def log_probabilities(logits, log_q, sampled_fraction):
    """Logarithm of the estimate of p at each position.

    Args:
        logits: `[batch, length]`, of "this token was replaced": log((1 - D) / D).
        log_q: `[batch, length]`.
        sampled_fraction: k / n.

    Returns:
        float32 `[batch, length]`.

    >>> import numpy as np
    >>> d, q = 0.9, 0.02
    >>> logs = log_probabilities(np.log([[0.1 / 0.9]]), np.log([[q]]), 3 / 20)
    >>> bool(np.isclose(np.exp(logs)[0, 0], 3 * q * d / (20 * (1 - d))))
    True
    """
    logits, log_q = ops.cast(logits, "float32"), ops.cast(log_q, "float32")
    return ops.log(ops.cast(sampled_fraction, "float32")) + log_q - logits
