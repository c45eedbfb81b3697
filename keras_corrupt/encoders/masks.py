"""Attention masks: which keys a query may see.

Each of `MASKS` makes, of a padding mask `[batch, length]` with 1 for tokens and 0 for
padding, a boolean mask that is broadcastable to `[batch, heads, query, key]`.
"""

from keras import ops


def bidirectional(padding_mask):
    """Every position sees all tokens, as in BERT.

    >>> import numpy as np
    >>> np.array(bidirectional(np.array([[1, 1, 0]]))).tolist()
    [[[[True, True, False]]]]
    """
    return ops.cast(padding_mask, "bool")[:, None, None, :]


def left_to_right(padding_mask):
    """Every position sees itself and the tokens before it.

    >>> import numpy as np
    >>> np.array(left_to_right(np.array([[1, 1, 0]])))[0, 0].astype(int).tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    """
    return _directed(padding_mask, ops.less)


def right_to_left(padding_mask):
    """Every position sees itself and the tokens after it.

    >>> import numpy as np
    >>> np.array(right_to_left(np.array([[1, 1, 0]])))[0, 0].astype(int).tolist()
    [[1, 1, 0], [0, 1, 0], [0, 0, 1]]
    """
    return _directed(padding_mask, ops.greater)


def within(mask, length, window):
    """Narrows a mask to keys that are at most half a window from their query.

    Args:
        mask: A mask that a function above made.
        length: Int or scalar. Tokens of a text.
        window: Int, even. Tokens to both sides together.

    >>> import numpy as np
    >>> mask = bidirectional(np.array([[1, 1, 1, 0]]))
    >>> np.array(within(mask, 4, window=2))[0, 0].astype(int).tolist()
    [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 0], [0, 0, 1, 1]]
    """
    positions = ops.arange(length)
    distance = ops.absolute(positions[:, None] - positions[None, :])
    seen = ops.logical_and(mask, distance <= window // 2)
    return ops.logical_or(seen, distance == 0)  # as in `_directed`


def within_texts(mask, text_ids):
    """Narrows a mask to keys of their query's own text.

    Args:
        mask: A mask that a function above made.
        text_ids: int32 `[batch, length]`, the number of a token's text in its row.

    >>> import numpy as np
    >>> mask = bidirectional(np.array([[1, 1, 1, 0]]))
    >>> texts = np.array([[1, 1, 2, 0]])
    >>> np.array(within_texts(mask, texts))[0, 0].astype(int).tolist()
    [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    """
    positions = ops.arange(ops.shape(text_ids)[1])
    itself = positions[:, None] == positions[None, :]
    same = ops.equal(text_ids[:, None, :, None], text_ids[:, None, None, :])
    return ops.logical_or(ops.logical_and(mask, same), itself)  # as in `_directed`


def _directed(padding_mask, compare):
    positions = ops.arange(ops.shape(padding_mask)[1])
    query, key = positions[:, None], positions[None, :]
    seen = ops.logical_and(bidirectional(padding_mask), compare(key, query))
    # Padding sees itself, too: a query without any key would have no softmax.
    return ops.logical_or(seen, key == query)


#: An encoder's `attention` -> what makes its mask.
MASKS = {
    "bidirectional": bidirectional,
    "left_to_right": left_to_right,
    "right_to_left": right_to_left,
}
