"""Text encoders: what every objective trains and every downstream task uses."""

from keras_corrupt.encoders.dense import Dense
from keras_corrupt.encoders.feed_forward import GatedDense
from keras_corrupt.encoders.text_model import TextModel
from keras_corrupt.encoders.transformer import TransformerEncoder
from keras_corrupt.encoders.transformer_layer import TransformerLayer

__all__ = [
    "Dense",
    "GatedDense",
    "TextModel",
    "TransformerEncoder",
    "TransformerLayer",
]
