"""What the kernels replace in the core; layers they know by exact type."""

import keras
from keras import ops

from keras_corrupt.corruption.sampling import sample_negatives, sample_tokens
from keras_corrupt.cpu_kernels import vocabulary
from keras_corrupt.cpu_kernels.gelu import bias_gelu
from keras_corrupt.cpu_kernels.transformer import transformer_layer
from keras_corrupt.devices.replicas import Dropout
from keras_corrupt.encoders.attention import SelfAttention
from keras_corrupt.encoders.dense import GELUS, Dense, gelu
from keras_corrupt.encoders.transformer_layer import TransformerLayer
from keras_corrupt.heads import softmax

#: Classes of a layer and of its parts that `transformer_layer` computes.
KNOWN = (
    *(TransformerLayer, SelfAttention, Dense),
    *(Dropout, keras.layers.LayerNormalization),
)


def call_layer(layer, x, mask, bias=None, training=False):
    """As `TransformerLayer.call`."""
    call = transformer_layer if is_known(layer) else TransformerLayer.call.__wrapped__
    return call(layer, x, mask, bias, training)


def is_known(layer):
    """Returns whether `transformer_layer` computes a layer: it knows all parts.

    A user may have put a layer of another class in a part's place, or quantized it.
    """
    return all(
        type(part) in KNOWN
        and not part.quantization_mode
        and getattr(part, "use_bias", True)
        and getattr(part, "center", True)
        for part in layer._flatten_layers()
    )


def call_dense(layer, inputs, training=None):
    """As `Dense.call`."""
    activation = layer.activation
    if type(layer) is Dense and layer.use_bias and activation in GELUS:
        products = ops.matmul(inputs, layer.kernel)
        return bias_gelu(products, layer.bias, activation is gelu(True))
    return Dense.call.__wrapped__(layer, inputs, training)


#: A function of the core -> the one that takes its place.
REPLACEMENTS = {
    TransformerLayer.call: call_layer,
    Dense.call: call_dense,
    softmax.output_logits: vocabulary.output_logits,
    softmax.likeliest: vocabulary.likeliest,
    softmax.cross_entropy: vocabulary.cross_entropy,
    softmax.cross_entropy_gradients: vocabulary.cross_entropy_gradients,
    sample_tokens: vocabulary.sample_tokens,
    sample_negatives: vocabulary.sample_negatives,
}
