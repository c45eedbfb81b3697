"""Electric's discriminator: an encoder, and an energy for each token."""

import keras
from keras import ops

from keras_corrupt.encoders.embeddings import initializer
from keras_corrupt.models.replaced_token_detection.generator_discriminator import (
    Discriminator,
)


class EnergyHead(keras.layers.Layer):
    """Gives each token an energy: E(x)_t = w . h(x)_t (Clark's thesis, 5.1.2).

    No bias, and no layer before it, which the released code has.

    Args:
        encoder: The `TransformerEncoder` whose output it reads.
    """

    def __init__(self, encoder, **kwargs):
        super().__init__(**kwargs)
        self.hidden_size = encoder.hidden_size
        self.initializer_range = encoder.initializer_range
        self.build()

    def build(self, input_shape=None):
        self.energy = self.add_weight(
            shape=(self.hidden_size, 1),
            initializer=initializer(self.initializer_range),
            dtype="float32",
            autocast=False,
            name="energy",
        )

    def call(self, hidden):
        """Returns float32 `[batch, length]`, from `[batch, length, hidden]`."""
        return ops.matmul(ops.cast(hidden, "float32"), self.energy)[..., 0]

    def flops(self, num_positions):
        """Counts the products, and the sums with log q and with the odds."""
        return num_positions * (2 * self.hidden_size + 2)


class EnergyNetwork(Discriminator):
    """An encoder with an energy at every position.

    Args:
        encoder: Constructor arguments of `TransformerEncoder`.
    """

    head_class = EnergyHead

    def call(self, inputs, training=False):
        """Returns float32 `[batch, length]`, the energies E(x)_t."""
        return super().call(inputs, training=training)
