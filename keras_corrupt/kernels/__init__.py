"""What a training step does between its matrix products, and Adam's update.

`plain` says in `keras.ops` what each function computes; it is what JAX runs.
`tensorflow` computes the same, most of it as one compiled program forward and one
backward. A program is compiled once for each shape. Training has one; inference meets
many, so encoders then use `plain`.
"""

import keras

from keras_corrupt.kernels import plain

if keras.backend.backend() == "tensorflow":
    from keras_corrupt.kernels import tensorflow as fused
else:
    fused = plain


def kernels_for(training):
    """Returns the module to take the kernels from."""
    return fused if training else plain


def dropout_of(layer, training):
    """Returns the rate and the seed generator of a `replicas.Dropout`."""
    if training and layer.rate > 0:
        return layer.rate, layer.seed_generator
    return 0.0, None
