r"""Probabilities of tokens from ELECTRA-TT (Clark's thesis, 5.4.5).

The labels are ELECTRA's (`objectives/replaced_tokens.py`): k of n tokens are
sampled from q, a two-tower model's (`objectives/cloze.py`), and a sample that is the
original token counts as original. So a token x_t is there

    as original   with probability  (n - k) / n p + k / n p q
    as replaced   with probability  k / n (1 - p) q

where p and q are its probabilities given the other tokens. The discriminator's
probability of "original" is D(x)_t. The odds, r = D / (1 - D), are the quotient of the
two if it has learned all that there is to learn, hence

    p = r k q / (n - k + k q + r k q)                    the rule "exact"

which is between 0 and 1. The thesis takes the formula that is exact for the labels of
Electric and algorithm 1, where each sample is noise:

    p = r k q / n                                        the rule "thesis"

With ELECTRA's labels that is p / (1 - p), times 1 - k / n (1 - q): more than p by 2.3
nats at p = 0.9, and not bounded by 1. Neither rule's probabilities add up to 1, since
no discriminator has learned all.
"""

from keras import ops

RULES = ("exact", "thesis")


def log_probabilities(logits, log_q, num_sampled, num_tokens, rule="exact"):
    """Logarithm of the estimate of p at each position.

    Args:
        logits: `[batch, length]`, of "this token was replaced": log(1 / r).
        log_q: `[batch, length]`.
        num_sampled: k, `[batch]`.
        num_tokens: n, `[batch]`.
        rule: One of `RULES`.

    Returns:
        float32 `[batch, length]`.

    >>> import numpy as np
    >>> p, q, k, n = 0.3, 0.9, 3, 20
    >>> r = ((n - k) * p + k * p * q) / (k * (1 - p) * q)
    >>> arguments = np.log([[1 / r]]), np.log([[q]]), [k], [n]
    >>> round(float(np.exp(log_probabilities(*arguments)[0, 0])), 4)
    0.3
    >>> round(float(np.exp(log_probabilities(*arguments, "thesis")[0, 0])), 4)
    0.4221
    """
    log_q = ops.cast(log_q, "float32")
    # Where none was sampled, the odds stay finite.
    sampled = ops.maximum(ops.cast(num_sampled, "float32"), 1.0)[:, None]
    tokens = ops.maximum(ops.cast(num_tokens, "float32")[:, None], sampled)
    numerator = ops.log(sampled) + log_q - ops.cast(logits, "float32")
    if rule == "thesis":
        return numerator - ops.log(tokens)
    rest = ops.log(tokens - sampled + sampled * ops.exp(log_q))
    return numerator - ops.logaddexp(rest, numerator)
