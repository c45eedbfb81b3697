"""Text encoders: what every objective trains and every downstream task uses."""

from keras_corrupt.encoders.transformer import TransformerEncoder

__all__ = ["TransformerEncoder"]
