"""The softmax over the vocabulary: logits, likely tokens, cross-entropy.

Logits may be of any float type, and are computed with in float32.
"""

import numpy as np
from keras import ops

from keras_corrupt.devices.guests import replaceable

#: Tokens whose probabilities are added up before one of them is drawn.
BLOCK = 256


@replaceable
def output_logits(products, bias):
    """Adds the bias of the vocabulary's tokens, in float32.

    Args:
        products: `[..., vocabulary]`, of hidden vectors and token embeddings.
        bias: `[vocabulary]`.

    Returns:
        float32 `[..., vocabulary]`.
    """
    return ops.cast(products, "float32") + ops.cast(bias, "float32")


@replaceable
def likeliest(logits):
    """Returns the ids of the largest logits.

    Args:
        logits: `[..., vocabulary]`.

    Returns:
        int32 `[...]`.
    """
    # Keras's argmax takes several passes over the vocabulary, for negative zeros.
    return ops.cast(ops.top_k(logits, 1)[1][..., 0], "int32")


def draw(logits, uniform):
    """Draws tokens from their softmax, by two random numbers each.

    By the inverse of the cumulative distribution: first a block of tokens is drawn,
    then one of its tokens, so that rare tokens have their share in float32, too.

    Args:
        logits: `[..., vocabulary]`.
        uniform: float32 `[..., 2]`, from 0 to 1.

    Returns:
        int32 `[...]`.

    >>> import numpy as np
    >>> logits = np.log([0.2, 0.5, 0.3]).astype("float32")
    >>> [int(draw(logits, np.array([0, u], "float32"))) for u in (0.1, 0.6, 0.9)]
    [0, 1, 2]
    """
    logits = ops.cast(logits, "float32")
    logits = logits - ops.max(logits, axis=-1, keepdims=True)
    blocks = _blocks(logits, -np.inf)
    block = _index(ops.sum(ops.exp(blocks), axis=-1), uniform[..., 0])
    chosen = ops.take_along_axis(blocks, block[..., None, None], axis=-2)
    return block * BLOCK + _index(ops.exp(chosen[..., 0, :]), uniform[..., 1])


def draw_by_weights(weights, uniform):
    """Draws tokens as often as their weights say; see `draw`.

    Args:
        weights: float32 `[vocabulary]`, none below 0.
        uniform: float32 `[..., 2]`, from 0 to 1.

    Returns:
        int32 `[...]`.

    >>> import numpy as np
    >>> uniform = np.array([[0, 0.1], [0, 0.6], [0, 0.9]], "float32")
    >>> np.array(draw_by_weights(np.array([2.0, 5.0, 3.0]), uniform)).tolist()
    [0, 1, 2]
    """
    blocks = _blocks(ops.cast(weights, "float32"), 0.0)
    block = _index(ops.sum(blocks, axis=-1), uniform[..., 0])
    return block * BLOCK + _index(ops.take(blocks, block, axis=0), uniform[..., 1])


def _blocks(x, filling):
    """Divides the last axis into blocks, the last one filled up."""
    rest = [(0, 0)] * (len(x.shape) - 1) + [(0, -x.shape[-1] % BLOCK)]
    x = ops.pad(x, rest, constant_values=filling)
    return ops.reshape(x, (*ops.shape(x)[:-1], -1, BLOCK))


def _index(weights, uniform):
    """Draws an index with the probabilities of the weights on the last axis."""
    cumulative = ops.cumsum(weights, axis=-1)
    total = cumulative[..., -1:]
    passed = ops.sum(ops.cast(cumulative <= uniform[..., None] * total, "int32"), -1)
    # Rounding may lead past the last index that has a weight.
    last = ops.sum(ops.cast(cumulative < total, "int32"), -1)
    return ops.minimum(passed, last)


@replaceable
def cross_entropy(logits, target_ids):
    """Negative log-probability of the targets under the logits' softmax.

    Args:
        logits: `[..., vocabulary]`.
        target_ids: int `[...]`.

    Returns:
        float32 `[...]`.
    """
    return ops.sparse_categorical_crossentropy(
        target_ids, ops.cast(logits, "float32"), from_logits=True
    )


@replaceable
def cross_entropy_gradients(products, bias, target_ids, upstream):
    """Gradients of `cross_entropy` of `output_logits`, for callers that keep no logits.

    Args:
        products: See `output_logits`.
        bias: Likewise.
        target_ids: int `[...]`.
        upstream: float32 `[...]`, the loss's gradient.

    Returns:
        The gradients of `products`, in their type, and of `bias`, float32
        `[vocabulary]`.
    """
    softmax = ops.softmax(output_logits(products, bias))
    is_target = ops.one_hot(target_ids, products.shape[-1], dtype="float32")
    gradients = upstream[..., None] * (softmax - is_target)
    sums = ops.sum(gradients, axis=tuple(range(len(products.shape) - 1)))
    return ops.cast(gradients, products.dtype), sums
