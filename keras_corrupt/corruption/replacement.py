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
    length = ops.shape(token_ids)[1]
    token_ids = ops.cast(token_ids, "int32")
    old_ids = ops.take_along_axis(token_ids, masking.positions, axis=1)
    # Differences are added, not values written: the order of repeated indices is
    # then of no account, on any backend.
    change = (ops.cast(new_ids, "int32") - old_ids) * ops.cast(masking.weights, "int32")
    return token_ids + add_up(change, masking.positions, length)


def add_up(values, positions, length):
    """Adds values up at their positions; the other positions have 0.

    Args:
        values: `[batch, masked]`.
        positions: int32 `[batch, masked]`.
        length: Tokens of a sequence.

    Returns:
        `[batch, length]`, of the values' type.

    >>> import numpy as np
    >>> values, positions = np.array([[0.5, 2.0, 1.0]]), np.array([[2, 0, 2]])
    >>> np.array(add_up(values, positions, 4)).tolist()
    [[2.0, 0.0, 1.5, 0.0]]
    """
    batch = ops.shape(values)[0]
    rows = ops.arange(batch, dtype="int32")[:, None]
    flat = rows * length + ops.cast(positions, "int32")
    sums = ops.segment_sum(
        ops.reshape(values, (-1,)),
        ops.reshape(flat, (-1,)),
        num_segments=batch * length,
    )
    return ops.reshape(sums, (batch, length))
