"""What the kernels replace in the core; they know BERT's layer, by exact type."""

from keras_corrupt.encoders.transformer_layer import TransformerLayer
from keras_corrupt.gpu_kernels.residual_norm import SUMMED
from keras_corrupt.gpu_kernels.transformer import transformer_layer

#: Widths that the kernels compute are multiples of it: they divide a row into parts
#: whose sizes are powers of 2, and small parts would be many.
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
