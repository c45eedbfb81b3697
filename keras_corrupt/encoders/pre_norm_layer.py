"""A Transformer layer that normalises what its sub-layers read."""

from keras_corrupt.encoders.transformer_layer import TransformerLayer


class PreNormTransformerLayer(TransformerLayer):
    """Self-attention and a feed-forward network, each `x + sublayer(norm(x))`.

    Xiong et al., "On Layer Normalization in the Transformer Architecture", 2020. The
    sum of a stack of such layers is normalised once more, by its encoder.

    Args:
        args: Arguments of `TransformerLayer`.
        kwargs: Arguments of `TransformerLayer`.
    """

    def sublayer(self, x, compute, norm, training, seed):
        def add(x, change):
            return x + self.dropout(change, training=training, seed=seed)

        change = compute(self.again(norm, training)(x))
        return self.again(add, training)(x, change)
