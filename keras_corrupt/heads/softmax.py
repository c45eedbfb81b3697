"""The softmax over the vocabulary: logits, the likeliest token, cross-entropy.

Logits may be of any float type, and are computed with in float32.
"""

from keras import ops

from keras_corrupt.devices.guests import replaceable


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
