"""Writing tokens into chosen positions."""

from keras import ops


def replace_tokens(token_ids, masking, new_ids):
    """Writes `new_ids` at the chosen positions.

    Args:
        token_ids: int32 `[batch, length]`.
        masking: A `Masking`; slots of weight 0 change nothing, whatever position
            they name, so padded slots may repeat a position.
        new_ids: int32 `[batch, masked]`.

    Returns:
        int32 `[batch, length]`.

    >>> import numpy as np
    >>> from keras_corrupt.corruption import Masking, replace_tokens
    >>> masking = Masking(np.array([[2, 0]]), np.array([[1.0, 0.0]]))
    >>> ids = replace_tokens(np.array([[5, 6, 7]]), masking, np.array([[9, 9]]))
    >>> np.array(ids).tolist()
    [[5, 6, 9]]
    """
    shape = ops.shape(token_ids)
    token_ids = ops.cast(token_ids, "int32")
    old_ids = ops.take_along_axis(token_ids, masking.positions, axis=1)
    # Differences are added, not values written: the order of repeated indices is
    # then of no account, on any backend.
    change = (ops.cast(new_ids, "int32") - old_ids) * ops.cast(masking.weights, "int32")
    rows = ops.arange(shape[0], dtype="int32")[:, None]
    flat = rows * shape[1] + ops.cast(masking.positions, "int32")
    changes = ops.segment_sum(
        ops.reshape(change, (-1,)),
        ops.reshape(flat, (-1,)),
        num_segments=shape[0] * shape[1],
    )
    return token_ids + ops.reshape(changes, shape)
