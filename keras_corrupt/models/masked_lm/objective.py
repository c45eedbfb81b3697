"""Masked language modelling (Devlin et al., 2019; Clark's thesis, 5.1.1).

L_MLM = mean over masked positions t of -log p(x_t | x with [MASK]s)
"""

from keras import ops

from keras_corrupt.kernels import active


def masked_lm_loss(logits, target_ids):
    """Cross-entropy of the original tokens at each masked position.

    Args:
        logits: `[batch, masked, vocabulary]`.
        target_ids: int `[batch, masked]`, the original tokens.

    Returns:
        float32 `[batch, masked]`.

    >>> import numpy as np
    >>> loss = masked_lm_loss(np.zeros((1, 1, 8)), np.array([[3]]))
    >>> bool(np.isclose(float(loss[0, 0]), np.log(8)))
    True
    """
    return active().cross_entropy(logits, target_ids)


def correct_predictions(logits, target_ids):
    """Returns 1.0 where the likeliest token is the original, `[batch, masked]`."""
    predicted = active().likeliest(logits)
    return ops.cast(predicted == ops.cast(target_ids, "int32"), "float32")
