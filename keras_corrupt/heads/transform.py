"""What a head begins with: a linear layer, gelu and layer norm, as in released code."""

import keras

from keras_corrupt.encoders.cost import LAYER_NORM_FLOPS
from keras_corrupt.encoders.dense import Dense, gelu
from keras_corrupt.encoders.embeddings import initializer


def transform_and_norm(encoder, units, dtype):
    """Makes a linear layer with gelu, and the layer norm that follows it.

    Args:
        encoder: The `TransformerEncoder` whose output the head reads.
        units: Size of the vectors that they give.
        dtype: Their dtype policy.

    Returns:
        Both layers, named `transform` and `norm`.
    """
    transform = Dense(
        units,
        gelu(encoder.approximate_gelu),
        kernel_initializer=initializer(encoder.initializer_range),
        dtype=dtype,
        name="transform",
    )
    norm = keras.layers.LayerNormalization(
        epsilon=encoder.layer_norm_epsilon, dtype=dtype, name="norm"
    )
    return transform, norm


def transform_flops(transform):
    """Counts one vector through `transform` and the layer norm that follows it."""
    return transform.flops() + LAYER_NORM_FLOPS * transform.units
