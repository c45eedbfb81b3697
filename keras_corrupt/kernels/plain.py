"""The kernels in `keras.ops`: the definition, run where `fused` is not.

Inputs may be of any float type, and results have the type of the first. The norm, the
gelu and the softmax are computed in float32.
"""

import keras
import numpy as np
from keras import ops


def attention(projected, bias, num_heads, mask, logits_bias=None, rate=0.0, seed=None):
    """Multi-head attention without its four projections (Vaswani et al., 2017, 3.2).

    Args:
        projected: `[batch, length, 3 * hidden]`: query, key and value side by side.
        bias: `[3 * hidden]`, added to them.
        num_heads: Number of heads; divides `hidden`.
        mask: Boolean, broadcastable to `[batch, heads, length, length]`, true where a
            query (third axis) may look at a key (fourth).
        logits_bias: `None`, or what is added to the attention logits, broadcastable
            likewise (relative positions).
        rate: Dropout rate of the attention weights.
        seed: A `keras.random.SeedGenerator`, for a positive rate.

    Returns:
        `[batch, length, hidden]`.
    """
    batch, length, width = ops.shape(projected)
    hidden = width // 3
    shape = (batch, length, num_heads, hidden // num_heads)
    shifted = ops.cast(projected, "float32") + ops.cast(bias, "float32")
    query, key, value = (
        ops.reshape(x, shape)
        for x in ops.split(ops.cast(shifted, projected.dtype), 3, axis=-1)
    )
    if rate == 0:  # the fused op has no dropout
        context = ops.dot_product_attention(query, key, value, logits_bias, mask)
        return ops.reshape(context, (batch, length, hidden))
    query = ops.transpose(query, (0, 2, 1, 3))  # [batch, heads, length, head]
    key = ops.transpose(key, (0, 2, 3, 1))
    value = ops.transpose(value, (0, 2, 1, 3))
    logits = ops.cast(ops.matmul(query, key), "float32")
    logits = logits * shape[-1] ** -0.5
    if logits_bias is not None:
        logits = logits + ops.cast(logits_bias, "float32")
    weights = dropout(ops.softmax(ops.where(mask, logits, -1e9)), rate, seed)
    context = ops.matmul(ops.cast(weights, value.dtype), value)
    return ops.reshape(ops.transpose(context, (0, 2, 1, 3)), (batch, length, hidden))


def residual_norm(x, y, bias, gamma, beta, epsilon, rate=0.0, seed=None):
    """Layer norm of `x + dropout(y + bias)`.

    Args:
        x: `[batch, length, hidden]`.
        y: `[batch, length, hidden]`.
        bias: `[hidden]`.
        gamma: `[hidden]`, the norm's factor.
        beta: `[hidden]`, the norm's shift.
        epsilon: Added to the variance.
        rate: Dropout rate.
        seed: A `keras.random.SeedGenerator`, for a positive rate.

    Returns:
        An array like `x`.
    """
    y = dropout(ops.cast(y, "float32") + ops.cast(bias, "float32"), rate, seed)
    z = ops.cast(x, "float32") + y
    centred = z - ops.mean(z, axis=-1, keepdims=True)
    variance = ops.mean(ops.square(centred), axis=-1, keepdims=True)
    normal = centred * ops.rsqrt(variance + epsilon)
    return ops.cast(normal * gamma + beta, x.dtype)


def bias_gelu(x, bias, approximate=False):
    """Gelu of `x + bias`.

    Args:
        x: `[..., hidden]`.
        bias: `[hidden]`.
        approximate: Whether to use gelu's tanh approximation.

    Returns:
        An array like `x`.
    """
    y = ops.cast(x, "float32") + ops.cast(bias, "float32")
    return ops.cast(ops.gelu(y, approximate=approximate), x.dtype)


def bias_gelu_matmul(x, bias, kernel, approximate=False):
    """The product of `bias_gelu` and a matrix.

    Args:
        x: `[..., hidden]`.
        bias: `[hidden]`.
        kernel: `[hidden, width]`.
        approximate: Whether to use gelu's tanh approximation.

    Returns:
        `[..., width]`.
    """
    return ops.matmul(bias_gelu(x, bias, approximate), kernel)


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


def dropout(x, rate, seed):
    """Zeroes a fraction `rate` of `x`, and scales up the rest."""
    return keras.random.dropout(x, rate, seed=seed) if rate else x


def adam(variable, momentum, velocity, gradient, rate, beta_1, beta_2, epsilon):
    """Updates a variable and its two moments (Kingma and Ba, 2015, algorithm 1).

    Args:
        variable: A variable of any shape.
        momentum: A variable of that shape, the gradient's moving average.
        velocity: The same of its square.
        gradient: An array of that shape.
        rate: The learning rate; its bias correction, if any, is in it.
        beta_1: Decay of the first average.
        beta_2: Decay of the second.
        epsilon: Added to the root of `velocity`.
    """
    momentum.assign(momentum + (gradient - momentum) * (1.0 - beta_1))
    velocity.assign(velocity + (ops.square(gradient) - velocity) * (1.0 - beta_2))
    variable.assign(variable - rate * momentum / (ops.sqrt(velocity) + epsilon))
