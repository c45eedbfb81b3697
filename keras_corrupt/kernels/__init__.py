"""The element-wise steps between the matrix products of a Transformer layer.

`plain` says in `keras.ops` what each step computes; it is what JAX runs, and inference
everywhere. `tensorflow` computes the same with each step compiled into one program,
forward and backward. Only training uses it: it compiles once for each shape, and
inference meets many.
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
