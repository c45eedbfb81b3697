"""What the kernels replace in the core; they know BERT's layer, by exact type."""

from keras import ops

from keras_corrupt.corruption.sampling import sample_negatives, sample_tokens
from keras_corrupt.cpu_kernels import vocabulary
from keras_corrupt.cpu_kernels.gelu import bias_gelu
from keras_corrupt.cpu_kernels.transformer import transformer_layer
from keras_corrupt.encoders.dense import GELUS, Dense, gelu
from keras_corrupt.encoders.transformer_layer import TransformerLayer
from keras_corrupt.heads import softmax


def call_layer(layer, x, mask, bias=None, training=False):
    """As `TransformerLayer.call`."""
    call = (
        transformer_layer if layer.is_bert_layer else TransformerLayer.call.__wrapped__
    )
    return call(layer, x, mask, bias, training)


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
