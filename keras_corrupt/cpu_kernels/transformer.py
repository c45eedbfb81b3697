"""A Transformer layer."""

from keras import ops

from keras_corrupt.cpu_kernels.attention import attention
from keras_corrupt.cpu_kernels.gelu import bias_gelu_matmul
from keras_corrupt.cpu_kernels.residual_norm import residual_norm


def transformer_layer(layer, x, mask, bias, training):
    """Computes what `encoders.TransformerLayer` does, from its variables.

    Biases are added where the products are read next.

    Args:
        layer: The layer.
        x: `[batch, length, hidden]`.
        mask: Boolean, broadcastable to `[batch, heads, length, length]`.
        bias: `None`, or the bias of the attention logits, broadcastable likewise.
        training: Whether dropout is active.

    Returns:
        A tensor like `x`.
    """
    attended = _self_attention(layer.attention, x, mask, bias, training)
    output = layer.attention.output_projection
    x = _residual_norm(layer, x, attended, output, layer.attention_norm, training)
    fed = bias_gelu_matmul(
        ops.matmul(x, layer.intermediate.kernel),
        layer.intermediate.bias,
        layer.feedforward_output.kernel,
        layer.approximate_gelu,
    )
    output = layer.feedforward_output
    return _residual_norm(layer, x, fed, output, layer.feedforward_norm, training)


def _self_attention(layer, x, mask, bias, training):
    """Computes a `SelfAttention`, without the bias of its output."""
    projections = layer.query, layer.key, layer.value
    # One product is faster than three, and so is its gradient.
    kernel = ops.concatenate([dense.kernel for dense in projections], axis=1)
    context = attention(
        ops.matmul(x, kernel),
        ops.concatenate([dense.bias for dense in projections], axis=0),
        layer.num_heads,
        mask,
        bias,
        *_rate_and_seed(layer.dropout, training),
    )
    return ops.matmul(context, layer.output_projection.kernel)


def _residual_norm(layer, x, y, dense, norm, training):
    return residual_norm(
        x,
        y,
        *map(ops.convert_to_tensor, (dense.bias, norm.gamma, norm.beta)),
        norm.epsilon,
        *_rate_and_seed(layer.dropout, training),
    )


def _rate_and_seed(dropout, training):
    if training and dropout.rate > 0:
        return dropout.rate, dropout.seed_generator
    return 0.0, None
