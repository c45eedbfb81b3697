"""The head of replaced token detection (Clark's thesis, 5.1.5)."""

import keras

from keras_corrupt.encoders.cost import SIGMOID_FLOPS
from keras_corrupt.encoders.dense import Dense, gelu
from keras_corrupt.encoders.embeddings import initializer


class ReplacedTokenHead(keras.layers.Layer):
    """Gives each token one logit, of "this token was replaced".

    A linear layer to the hidden size, gelu, and a linear layer to one number, as in
    the released code. COCO-LM has the last one alone (Meng et al., 2021, 3.3).

    Args:
        encoder: The `TransformerEncoder` whose output it reads.
        transform: Whether a linear layer and gelu come first.
    """

    def __init__(self, encoder, transform=True, **kwargs):
        super().__init__(**kwargs)

        def dense(units, activation, dtype, name):
            return Dense(
                units,
                activation,
                kernel_initializer=initializer(encoder.initializer_range),
                dtype=dtype,
                name=name,
            )

        self.hidden_size = encoder.hidden_size
        self.transform = None
        if transform:
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
        for layer in filter(None, (self.transform, self.classifier)):
            layer.build((None, None, self.hidden_size))

    def call(self, hidden):
        """Returns float32 `[batch, length]`, from `[batch, length, hidden]`."""
        if self.transform is not None:
            hidden = self.transform(hidden)
        return self.classifier(hidden)[..., 0]

    def flops(self, num_positions):
        """Counts one sequence, forward, with that many tokens."""
        token = self.classifier.flops() + SIGMOID_FLOPS
        if self.transform is not None:
            token += self.transform.flops()
        return num_positions * token
