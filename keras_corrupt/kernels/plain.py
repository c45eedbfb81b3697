"""The kernels that are no layers, in `keras.ops`: the definition, where `fused` is not.

Logits may be of any float type, and are computed with in float32.
"""

import keras
import numpy as np
from keras import ops


def output_logits(products, bias):
    """Adds the bias of the vocabulary's tokens, in float32.

    Args:
        products: `[..., vocabulary]`, of hidden vectors and token embeddings.
        bias: `[vocabulary]`.

    Returns:
        float32 `[..., vocabulary]`.
    """
    return ops.cast(products, "float32") + ops.cast(bias, "float32")


def likeliest(logits):
    """Returns the ids of the largest logits.

    Args:
        logits: `[..., vocabulary]`.

    Returns:
        int32 `[...]`.
    """
    # Keras's argmax takes several passes over the vocabulary, for negative zeros.
    return ops.cast(ops.top_k(logits, 1)[1][..., 0], "int32")


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


def cross_entropy_gradients(products, bias, target_ids, upstream):
    """Gradients of `cross_entropy` of `output_logits`, for callers that keep no logits.

    Args:
        products: See `output_logits`.
        bias: Likewise.
        target_ids: int `[...]`.
        upstream: float32 `[...]`, the loss's gradient.

    Returns:
        Those of `products`, in their type, and of `bias`, float32 `[vocabulary]`.
    """
    softmax = ops.softmax(output_logits(products, bias))
    is_target = ops.one_hot(target_ids, products.shape[-1], dtype="float32")
    gradients = upstream[..., None] * (softmax - is_target)
    sums = ops.sum(gradients, axis=tuple(range(len(products.shape) - 1)))
    return ops.cast(gradients, products.dtype), sums


def sample(logits, seed):
    """Draws a token from each softmax; no gradient flows through the draw.

    Args:
        logits: `[..., vocabulary]`.
        seed: A `keras.random.SeedGenerator`.

    Returns:
        int32 `[...]`.
    """
    rows = ops.reshape(ops.cast(logits, "float32"), (-1, logits.shape[-1]))
    ids = keras.random.categorical(rows, 1, dtype="int32", seed=seed)
    # Logits that are not numbers make TensorFlow draw an id past the end; the loss
    # will tell, if the embedding does not fail first.
    ids = ops.minimum(ids, logits.shape[-1] - 1)
    return ops.reshape(ids, ops.shape(logits)[:-1])


def sample_others(logits, excluded_ids, count, seed):
    """Draws different tokens for each row, each from the softmax over what is left.

    That is the distribution of the largest sums of logits and Gumbel noise (Kool et
    al., 2019).

    Args:
        logits: `[..., vocabulary]`.
        excluded_ids: int `[...]`, a token of each row that is never drawn.
        count: Number of tokens to draw, less than the vocabulary's.
        seed: A `keras.random.SeedGenerator`.

    Returns:
        int32 `[..., count]`, in the order of the draws.
    """
    uniform = keras.random.uniform(ops.shape(logits), seed=seed, dtype="float32")
    # Uniform draws may be 0, whose logarithm is infinite.
    gumbel = -ops.log(-ops.log(ops.maximum(uniform, 1e-30)))
    return likeliest_others(ops.cast(logits, "float32") + gumbel, excluded_ids, count)


def likeliest_others(logits, excluded_ids, count):
    """Returns the ids of the largest logits, one of them left out.

    Args:
        logits: `[..., vocabulary]`.
        excluded_ids: int `[...]`.
        count: Number of ids.

    Returns:
        int32 `[..., count]`, the likeliest first.
    """
    token_ids = ops.arange(logits.shape[-1], dtype="int32")
    is_excluded = token_ids == ops.cast(excluded_ids, "int32")[..., None]
    others = ops.where(is_excluded, -np.inf, logits)
    return ops.cast(ops.top_k(others, count)[1], "int32")


def adam(variable, momentum, velocity, gradient, rate, beta_1, beta_2, epsilon):
    """Updates a variable and its two moments (Kingma and Ba, 2015, algorithm 1).

    Args:
        variable: An array of any shape.
        momentum: An array of that shape, the gradient's moving average.
        velocity: The same of its square.
        gradient: An array of that shape.
        rate: The learning rate; its bias correction, if any, is in it.
        beta_1: Decay of the first average.
        beta_2: Decay of the second.
        epsilon: Added to the root of `velocity`.

    Returns:
        The new variable, momentum and velocity.
    """
    momentum = momentum + (gradient - momentum) * (1.0 - beta_1)
    velocity = velocity + (ops.square(gradient) - velocity) * (1.0 - beta_2)
    step = rate * momentum / (ops.sqrt(velocity) + epsilon)
    return variable - step, momentum, velocity
