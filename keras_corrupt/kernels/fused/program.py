"""Runs a compiled kernel as a TensorFlow operation, on all cores.

A kernel is called as `kernel(first, *cut, *outputs, [sums], *whole)`. It gets a slice
along the first axis of what is cut and of the outputs, which it fills; `first` is the
index at which the slice starts. Arrays are float32, or bfloat16 given as the 16 bits
of each number (`uint16`).
"""

import itertools
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import tensorflow as tf
from keras import ops

from keras_corrupt.kernels.fused.memory import Memory

#: Values that are worth a piece of their own.
PIECE = 1 << 15
#: So that a thread that is held up holds up little.
PIECES_PER_CORE = 2

CORES = os.cpu_count()
if hasattr(os, "sched_getaffinity"):  # fewer in a container
    CORES = len(os.sched_getaffinity(0))
threads = ThreadPoolExecutor(CORES)
memory = Memory()


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
    shapes = [
        shape if all(isinstance(n, int) for n in shape) else tf.stack(shape)
        for shape, _ in outputs
    ]
    dtypes = [dtype for _, dtype in outputs]
    rest = [*whole, *shapes]
    from_tensor = [tf.is_tensor(x) for x in rest]

    def operation(*arrays):
        bits = [numbers(x) for x in arrays]
        tensors = iter(bits[len(cut) :])
        values = [
            next(tensors) if given else x
            for given, x in zip(from_tensor, rest, strict=True)
        ]
        values, shapes = values[: len(whole)], values[len(whole) :]
        results = [
            memory.empty(shape, dtype.as_numpy_dtype)
            for shape, dtype in zip(shapes, dtypes, strict=True)
        ]
        slices = [*bits[: len(cut)], *(numbers(x) for x in results)]
        length, size = len(slices[0]), slices[0].size
        count = max(1, min(length, size // PIECE, PIECES_PER_CORE * CORES))
        totals = [np.empty((count, *sums), "float32")] if sums else []
        left = iter(range(count))  # the threads take turns

        def work():
            for i in left:
                first, last = length * i // count, length * (i + 1) // count
                piece = [x[first:last] for x in slices]
                kernel(first, *piece, *(total[i] for total in totals), *values)

        others = [threads.submit(work) for _ in range(1, min(CORES, count))]
        work()
        for other in others:
            if not other.cancel():
                other.result()
        return [*results, *(total.sum(axis=0) for total in totals)]

    results = tf.numpy_function(
        operation,
        [*cut, *itertools.compress(rest, from_tensor)],
        [*dtypes, *([tf.float32] if sums else [])],
        stateful=False,
    )
    results = [results] if tf.is_tensor(results) else results  # one comes alone
    shapes = [*(shape for shape, _ in outputs), *([sums] if sums else [])]
    for result, shape in zip(results, shapes, strict=True):
        result.set_shape([n if isinstance(n, int) else None for n in shape])
    return results


def like(x):
    """Returns the description of an output with the shape and type of a tensor."""
    return ops.shape(x), x.dtype


def numbers(x):
    """Shows a kernel the bits of bfloat16 numbers, which Numba does not know."""
    return x.view(np.uint16) if x.dtype == tf.bfloat16.as_numpy_dtype else x


def float32(*tensors):
    """Returns each tensor or variable in float32."""
    return [tf.cast(x, tf.float32) for x in tensors]


def key_of(seed):
    """Returns two random words from a `SeedGenerator`; without one, any two."""
    if seed is None:
        return tf.zeros((2,), tf.uint32)
    return tf.cast(tf.convert_to_tensor(seed.next()), tf.uint32)
