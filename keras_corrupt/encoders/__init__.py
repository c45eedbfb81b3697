"""Text encoders: what every objective trains and every downstream task uses."""

from keras_corrupt.encoders.dense import Dense
from keras_corrupt.encoders.transformer import TransformerEncoder, TransformerLayer

__all__ = ["Dense", "TransformerEncoder", "TransformerLayer"]
