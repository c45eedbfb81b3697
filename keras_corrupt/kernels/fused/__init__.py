"""The kernels on TensorFlow and CPUs.

The functions are those of `plain` but for rounding in the last digits. Each goes once
over its arrays, on all cores, forward and backward: what it keeps for a row stays in
the processor's cache, and dropout's chance is computed where it is used. The matrix
products are TensorFlow's.

The loops stand in the files of the kernels and are made of `numbers`. `program` makes
an operation of a loop, `native` what TensorFlow calls, `pieces` what `threads` run;
`compiling` caches what Numba compiles.
"""

from keras_corrupt.kernels.fused.attention import attention
from keras_corrupt.kernels.fused.gelu import bias_gelu, bias_gelu_matmul
from keras_corrupt.kernels.fused.residual_norm import residual_norm
from keras_corrupt.kernels.fused.vocabulary import (
    cross_entropy,
    likeliest,
    output_logits,
    sample,
    sample_others,
)

__all__ = [
    "attention",
    "bias_gelu",
    "bias_gelu_matmul",
    "cross_entropy",
    "likeliest",
    "output_logits",
    "residual_norm",
    "sample",
    "sample_others",
]
