"""A tagger's prediction modules (Clark's thesis, 4.2.2)."""

import keras

from keras_corrupt.encoders.cost import dense_flops


class PredictionModule(keras.layers.Layer):
    """A hidden layer and a softmax: softmax(U ReLU(W h) + b).

    Args:
        hidden_size: Width of the hidden layer.
        num_classes: Number of classes.
    """

    def __init__(self, hidden_size, num_classes, **kwargs):
        super().__init__(**kwargs)
        self.hidden = keras.layers.Dense(
            hidden_size, "relu", use_bias=False, dtype=self.dtype_policy, name="hidden"
        )
        self.output_layer = keras.layers.Dense(
            num_classes, dtype=self.dtype_policy, name="output"
        )

    def build(self, input_shape):
        self.hidden.build(input_shape)
        self.output_layer.build((None, None, self.hidden.units))

    def call(self, states):
        """Returns logits, `[batch, length, classes]`."""
        return self.output_layer(self.hidden(states))

    def flops(self, length):
        """Counts one sentence, forward; `encoders/cost.py` has the rules."""
        width, hidden = self.hidden.kernel.shape
        matrices = 2 * width * hidden + dense_flops(hidden, self.output_layer.units)
        return length * (matrices + hidden)  # ReLU
