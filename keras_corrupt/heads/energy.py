"""The head of an energy-based cloze model (Clark's thesis, 5.1.2)."""

import keras
from keras import ops

from keras_corrupt.encoders.embeddings import initializer


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
