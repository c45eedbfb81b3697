"""What the kernels replace in the core; they know BERT's layer, by exact type."""

from keras_corrupt.encoders.transformer_layer import TransformerLayer
from keras_corrupt.gpu_kernels.residual_norm import SUMMED
from keras_corrupt.gpu_kernels.transformer import transformer_layer

#: The least width whose parts of a row are worth a kernel: a multiple of it.
WIDTH = 64


def call_layer(layer, x, mask, bias=None, training=False):
    """As `TransformerLayer.call`."""
    batch, length, hidden = x.shape
    fits = batch * length % SUMMED == 0 and hidden % WIDTH == 0
    if fits and layer.is_bert_layer and layer.remat == "none":
        return transformer_layer(layer, x, mask, bias, training)
    return TransformerLayer.call.__wrapped__(layer, x, mask, bias, training)


#: A function of the core -> the one that takes its place.
REPLACEMENTS = {TransformerLayer.call: call_layer}
