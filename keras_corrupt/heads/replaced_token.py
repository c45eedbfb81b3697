"""The head of replaced token detection (Clark's thesis, 5.1.5)."""

import keras

from keras_corrupt.encoders.dense import Dense, gelu
from keras_corrupt.encoders.embeddings import initializer
from keras_corrupt.heads import cost


class ReplacedTokenHead(keras.layers.Layer):
    """Gives each token one logit, of "this token was replaced".

    A linear layer to the hidden size, gelu, and a linear layer to one number, as in
    the released code.

    Args:
        encoder: The `TransformerEncoder` whose output it reads.
    """

    def __init__(self, encoder, **kwargs):
        super().__init__(**kwargs)

        def dense(units, activation, dtype, name):
            return Dense(
                units,
                activation,
                kernel_initializer=initializer(encoder.initializer_range),
                dtype=dtype,
                name=name,
            )

        self.sizes = encoder.architecture
        self.transform = dense(
            encoder.hidden_size,
            gelu(encoder.approximate_gelu),
            self.dtype_policy,
            "transform",
        )
        # While nearly all logits are alike, bfloat16 would blur what differs.
        self.classifier = dense(1, None, "float32", "classifier")
        self.build()

    def build(self, input_shape=None):
        for layer in (self.transform, self.classifier):
            layer.build((None, None, self.sizes["hidden_size"]))

    def call(self, hidden):
        """Returns float32 `[batch, length]`, from `[batch, length, hidden]`."""
        return self.classifier(self.transform(hidden))[..., 0]

    def flops(self, num_positions):
        """Counts one sequence, forward: see `cost.replaced_token_head_flops`."""
        return cost.replaced_token_head_flops(self.sizes, num_positions)
