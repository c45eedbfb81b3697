"""The element-wise steps between the matrix products of a Transformer layer.

`plain` says in `keras.ops` what each step computes; XLA fuses it on accelerators and
on JAX. `tensorflow` computes the same on TensorFlow in one pass over memory, forward
and backward, which is what a training step on CPUs spends its time on otherwise. Only
training uses it: it compiles once for each shape, and inference meets many.
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
    """Returns the rate and the seed generator of a `keras.layers.Dropout`."""
    if training and layer.rate > 0:
        return layer.rate, layer.seed_generator
    return 0.0, None
