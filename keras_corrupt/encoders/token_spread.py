"""How much the states of a text's tokens differ from each other."""

from keras import ops


def token_spread(states, padding_mask):
    """Returns 1 minus the squared length of the mean unit state of a text's tokens.

        spread = 1 - |sum_t h_t / |h_t|| ** 2 / T ** 2

    The spread is 1 minus the mean cosine of two tokens' states. It is 0 where all
    states have one direction, so that no layer above tells tokens apart, and near 1
    where directions are random.

    Args:
        states: `[batch, length, hidden]`.
        padding_mask: `[batch, length]`, 1 for tokens, 0 for padding.

    Returns:
        float32 `[batch]`; 1 for a text without tokens.

    Example:

    >>> import numpy as np
    >>> states = np.array([[[3.0, 0.0], [0.0, 1.0], [5.0, 5.0]]])
    >>> spread = token_spread(states, np.array([[1, 1, 0]]))  # the last one is padding
    >>> [round(float(x), 3) for x in spread]  # |(1/2, 1/2)| ** 2 = 1/2
    [0.5]
    """
    real = ops.cast(padding_mask, "float32")
    units = ops.normalize(ops.cast(states, "float32"), axis=-1)
    total = ops.sum(units * real[..., None], axis=1)
    tokens = ops.maximum(ops.sum(real, axis=1), 1.0)
    cosine = ops.sum(ops.square(total / tokens[:, None]), axis=-1)
    return ops.maximum(0.0, 1.0 - cosine)  # rounding makes some a little above 1
