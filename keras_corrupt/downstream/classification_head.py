"""What classifiers, taggers and rankers share: a linear layer, and lists of labels."""

import keras
import numpy as np

from keras_corrupt.encoders.embeddings import initializer


class ClassificationHead(keras.Model):
    """Dropout, then one linear layer, in float32.

    Args:
        encoder: The `TransformerEncoder` whose states it reads.
        units: Number of outputs.
        dropout: Dropout rate of the input.
    """

    def __init__(self, encoder, units, dropout, **kwargs):
        super().__init__(dtype="float32", **kwargs)
        self.dropout = keras.layers.Dropout(dropout)
        self.dense = keras.layers.Dense(
            units,
            kernel_initializer=initializer(encoder.initializer_range),
            name="dense",
        )
        self.build((None, encoder.hidden_size))

    def build(self, input_shape):
        self.dense.build(input_shape)
        self.built = True

    def call(self, x, training=False):
        return self.dense(self.dropout(x, training=training))


def as_list(values):
    """Returns labels, or numbers, as a list that JSON can hold; `None` for `None`.

    >>> as_list(np.array([1, 2]))
    [1, 2]
    """
    if values is None:
        return None
    return [x.item() if isinstance(x, np.generic) else x for x in values]
