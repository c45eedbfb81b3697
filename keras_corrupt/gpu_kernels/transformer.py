"""A Transformer layer."""

import jax.numpy as jnp
import keras
from keras import ops

from keras_corrupt.devices.hardware_random import seed_of
from keras_corrupt.gpu_kernels.residual_norm import residual_norm


def transformer_layer(layer, x, mask, bias=None, training=False, interpret=False):
    """Computes what `encoders.TransformerLayer` does, with its dropout.

    Args:
        layer: The layer.
        x: `[batch, length, hidden]`.
        mask: Boolean, broadcastable to `[batch, heads, length, length]`.
        bias: `None`, or the bias of the attention logits, broadcastable likewise.
        training: Whether dropout is active.
        interpret: Whether to compute without a GPU, slowly.

    Returns:
        An array like `x`.
    """
    dropouts = layer.attention.dropout, layer.dropout, layer.dropout
    seeds = [dropout.draw(training) for dropout in dropouts]

    def add(x, y, dense, norm, seed):
        """Adds the product of a sub-layer's last layer, and normalises the sum."""
        vectors = dense.bias, norm.gamma, norm.beta
        vectors = ops.stack([ops.cast(vector, "float32") for vector in vectors])
        seed = seed_of(seed.next()) if seed else jnp.zeros(2, "uint32")
        rate = layer.dropout.rate if training else 0.0
        rows = [ops.reshape(each, (-1, layer.hidden_size)) for each in (x, y)]
        found = residual_norm(*rows, vectors, seed, norm.epsilon, rate, interpret)
        return ops.reshape(found, ops.shape(x))

    output = layer.attention.output_projection
    context = attended(layer.attention, x, mask, bias, training, seeds[0])
    y = ops.matmul(context, output.kernel)
    x = add(x, y, output, layer.attention_norm, seeds[1])
    output = layer.feedforward_output
    products = ops.matmul(x, layer.intermediate.kernel)
    # Again in the backward pass, which then reads half as much.
    inner = keras.remat(layer.intermediate.from_products)(products)
    y = ops.matmul(inner, output.kernel)
    return add(x, y, output, layer.feedforward_norm, seeds[2])


def attended(layer, x, mask, bias, training, seed):
    """Returns what the heads of a `SelfAttention` attend to.

    One product, whose bias has one gradient, takes the place of three.
    """
    projections = layer.query, layer.key, layer.value
    kernel = ops.concatenate([dense.kernel for dense in projections], axis=1)
    biases = ops.concatenate([dense.bias for dense in projections], axis=0)
    products = ops.cast(ops.matmul(x, kernel), "float32")
    projected = ops.cast(products + ops.cast(biases, "float32"), x.dtype)
    query, key, value = ops.split(projected, 3, axis=-1)
    return layer.attended(query, key, value, mask, bias, training, seed)
