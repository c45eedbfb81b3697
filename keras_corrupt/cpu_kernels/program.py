"""Makes a TensorFlow operation of a compiled kernel.

A kernel is called as `kernel(first, *cut, *outputs, [sums], *whole)`, by several
threads. It gets a slice along the first axis of `cut` and of the outputs, which it
fills; `first` is the index at which the slice starts. Arrays are float32, or
bfloat16 given as the 16 bits of each number (`uint16`); a tensor without axes is given
as a number. Into `sums`, `[1, number]`, it puts numbers to add up over all slices.
"""

import functools
import math

import numpy as np
import tensorflow as tf
from keras import ops

from keras_corrupt.cpu_kernels import native, threads
from keras_corrupt.cpu_kernels.pieces import pieces_of


def run(kernel, cut, outputs, *whole, sums=()):
    """Makes the operation.

    Args:
        kernel: The kernel.
        cut: Tensors with the same first axis.
        outputs: Shape, as of `ops.shape`, and type of each result, with that first
            axis.
        whole: Tensors that each piece needs.
        sums: The shape of the numbers that are added up over all pieces, if any are.

    Returns:
        A list of tensors: the outputs, then the float32 sums.
    """
    if tf.executing_eagerly():
        count, inputs = len(cut), [*cut, *whole]
        graph = tf.function(
            lambda *x: run(kernel, x[:count], outputs, *x[count:], sums=sums)
        ).get_concrete_function(*inputs)  # also where functions are run eagerly
        return graph(*inputs)
    program = _program(
        kernel,
        tuple((x.dtype, x.shape.rank) for x in cut),
        tuple((dtype, len(shape)) for shape, dtype in outputs),
        tuple((x.dtype, x.shape.rank) for x in whole),
        math.prod(sums) if sums else 0,
    )
    results = [*outputs, *([(sums, tf.float32)] if sums else [])]
    shapes = [tf.cast(tf.stack(shape), tf.int64) for shape, _ in results]
    inputs, dtypes = [*cut, *whole, *shapes], [dtype for _, dtype in results]
    operation = tf.compat.v1.get_default_graph().create_op(
        native.OPERATION,
        inputs,
        dtypes,
        name=kernel.__name__.strip("_"),
        attrs={
            "program": tf.compat.v1.AttrValue(i=program.ctypes.data),
            "process": tf.compat.v1.AttrValue(i=native.PROCESS),
            "Tin": _types(x.dtype for x in inputs),
            "Tout": _types(dtypes),
        },
    )
    for result, (shape, _) in zip(operation.outputs, results, strict=True):
        result.set_shape([n if isinstance(n, int) else None for n in shape])
    return operation.outputs


@functools.cache  # which keeps the program where operations find it
def _program(kernel, cut, outputs, whole, sums):
    """Makes the program of an operation, from types and ranks of its tensors."""
    function, words = pieces_of(
        kernel,
        _numpy(cut + outputs),
        (("float32", 2),) if sums else (),
        _numpy(whole),
    )
    counts = len(cut), len(whole), len(outputs), sums
    pool, count = threads.pool()
    return np.array([function.address, *counts, count, pool, words], np.intp)


def _numpy(tensors):
    """Names the types as NumPy does; bfloat16 goes by the type of its bits."""
    return tuple(
        ("uint16" if dtype == tf.bfloat16 else dtype.name, rank)
        for dtype, rank in tensors
    )


def _types(dtypes):
    """Makes an attribute of types."""
    enums = [dtype.as_datatype_enum for dtype in dtypes]
    return tf.compat.v1.AttrValue(list=tf.compat.v1.AttrValue.ListValue(type=enums))


def like(x):
    """Returns the description of an output with the shape and type of a tensor."""
    return ops.shape(x), x.dtype


def float32(*values):
    """Returns each tensor, variable or number in float32."""
    return [tf.cast(x, tf.float32) for x in values]


def key_of(seed):
    """Returns two random words from a `SeedGenerator`; without one, any two."""
    if seed is None:
        return tf.zeros((2,), tf.uint32)
    return tf.cast(tf.convert_to_tensor(seed.next()), tf.uint32)
