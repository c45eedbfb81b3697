"""The kernels on TensorFlow and CPUs.

The functions are those of `plain`, or what layers of `encoders` compute, but for
rounding in the last digits. Each loop goes once over its arrays, on all cores, forward
and backward: what it keeps for a row stays in the processor's cache, and dropout's
chance is computed where it is used. The matrix products are TensorFlow's.

The loops stand in the files of the kernels and are made of `numbers`. `program` makes
an operation of a loop, `native` what TensorFlow calls, `pieces` what `threads` run;
`compiling` caches what Numba compiles.
"""

from keras_corrupt.kernels.fused.gelu import bias_gelu
from keras_corrupt.kernels.fused.transformer import transformer_layer
from keras_corrupt.kernels.fused.vocabulary import (
    cross_entropy,
    cross_entropy_gradients,
    likeliest,
    output_logits,
    sample,
    sample_others,
)

__all__ = [
    "bias_gelu",
    "cross_entropy",
    "cross_entropy_gradients",
    "likeliest",
    "output_logits",
    "sample",
    "sample_others",
    "transformer_layer",
]
