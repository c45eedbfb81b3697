"""Runs a compiled kernel as a TensorFlow operation, on all cores.

A kernel is called as `kernel(first, *cut, *outputs, [sums], *whole)`. It gets a slice
along the first axis of what is cut and of the outputs, which it fills; `first` is the
index at which the slice starts. Arrays are float32, or bfloat16 given as the 16 bits
of each number (`uint16`).
"""

import os
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import tensorflow as tf
from keras import ops

#: Values that are worth a piece of their own.
PIECE = 1 << 15
#: So that a thread that is held up holds up little.
PIECES_PER_CORE = 4

CORES = os.cpu_count()
if hasattr(os, "sched_getaffinity"):  # fewer in a container
    CORES = len(os.sched_getaffinity(0))
threads = ThreadPoolExecutor(CORES)


def run(kernel, cut, outputs, *whole, sums=()):
    """Makes the operation.

    Args:
        kernel: The kernel.
        cut: Tensors with the same first axis.
        outputs: Shape, as of `ops.shape`, and type of each result, with that first
            axis.
        whole: Tensors and NumPy scalars that each piece needs.
        sums: The shape of what is added up over all pieces, if something is.

    Returns:
        A list of tensors: the outputs, then the float32 sums.
    """
    inputs = [*cut, *(x for x in whole if tf.is_tensor(x))]

    def operation(*arrays):
        arrays = [numbers(x) for x in arrays]
        results = arrays[len(inputs) :]
        tensors = iter(arrays[len(cut) : len(inputs)])
        values = [next(tensors) if tf.is_tensor(x) else x for x in whole]
        slices = [*arrays[: len(cut)], *results]
        length, size = len(slices[0]), slices[0].size
        count = max(1, min(length, size // PIECE, PIECES_PER_CORE * CORES))
        totals = np.empty((count, *sums), "float32")
        left = iter(range(count))  # the threads take turns

        def work():
            for i in left:
                first, last = length * i // count, length * (i + 1) // count
                piece = [x[first:last] for x in slices]
                kernel(first, *piece, *([totals[i]] if sums else []), *values)

        others = [threads.submit(work) for _ in range(1, min(CORES, count))]
        work()
        for other in others:
            if not other.cancel():
                other.result()
        return totals.sum(axis=0)

    if tf.executing_eagerly():
        results = [np.empty(shape, t.as_numpy_dtype) for shape, t in outputs]
        total = operation(*(x.numpy() for x in inputs), *results)
        results = [tf.convert_to_tensor(x) for x in results]
        return [*results, tf.convert_to_tensor(total)] if sums else results

    # The kernel writes into memory of TensorFlow, which is not to be had too early.
    with tf.control_dependencies(cut):
        results = [tf.raw_ops.Empty(shape=shape, dtype=t) for shape, t in outputs]
    total = tf.numpy_function(operation, [*inputs, *results], tf.float32)
    total.set_shape(sums)
    with tf.control_dependencies([total]):
        results = [tf.identity(x) for x in results]
    return [*results, total] if sums else results


def like(x):
    """Returns the description of an output with the shape and type of a tensor."""
    return ops.shape(x), x.dtype


def numbers(x):
    """Shows a kernel the bits of bfloat16 numbers, which Numba does not know."""
    return x.view(np.uint16) if x.dtype == ml_dtypes.bfloat16 else x


def float32(*tensors):
    """Returns each tensor or variable in float32."""
    return [tf.cast(x, tf.float32) for x in tensors]


def key_of(seed):
    """Returns two random words from a `SeedGenerator`; without one, any two."""
    if seed is None:
        return tf.zeros((2,), tf.uint32)
    return tf.cast(tf.convert_to_tensor(seed.next()), tf.uint32)
