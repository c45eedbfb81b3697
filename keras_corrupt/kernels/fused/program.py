"""Runs a compiled kernel as a TensorFlow operation, on all cores.

A kernel is called as `kernel(first, *cut, *outputs, [sums], *whole)`. It gets a slice
along the first axis of what is cut and of the outputs, which it fills; `first` is the
index at which the slice starts. Arrays are float32, or bfloat16 given as the 16 bits
of each number (`uint16`).
"""

import math
import os
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import tensorflow as tf
from keras import ops

#: Values that are worth a piece of their own.
PIECE = 1 << 15
#: TensorFlow takes an array over if its address is a multiple of this.
ALIGNMENT = 64

CORES = os.cpu_count()
if hasattr(os, "sched_getaffinity"):  # fewer in a container
    CORES = len(os.sched_getaffinity(0))
threads = ThreadPoolExecutor(CORES)


def run(kernel, cut, outputs, *whole, sums=None):
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
    tensors = [x for x in whole if tf.is_tensor(x)]
    # TensorFlow's allocator keeps memory for the next step; NumPy gives it back.
    results = [tf.raw_ops.Empty(shape=shape, dtype=dtype) for shape, dtype in outputs]

    def operation(*arrays):
        results = arrays[len(arrays) - len(outputs) :]
        arrays = [numbers(x) for x in arrays]
        rest = iter(arrays[len(cut) :])
        values = [next(rest) if tf.is_tensor(x) else x for x in whole]
        pieces = [*arrays[: len(cut)], *rest]
        count = max(1, min(len(pieces[0]), pieces[0].size // PIECE, 4 * CORES))
        totals = [np.empty((count, *sums), "float32")] if sums else []
        left = iter(range(count))  # threads take turns

        def work():
            for i in left:
                first, last = (len(pieces[0]) * k // count for k in (i, i + 1))
                piece = [x[first:last] for x in pieces]
                kernel(first, *piece, *(total[i] for total in totals), *values)

        others = [threads.submit(work) for _ in range(1, min(CORES, count))]
        work()
        for other in others:
            if not other.cancel():
                other.result()
        return [*results, *(total.sum(axis=0) for total in totals)]

    dtypes = [x.dtype for x in results] + ([tf.float32] if sums else [])
    filled = tf.numpy_function(
        operation, [*cut, *tensors, *results], dtypes, stateful=False
    )
    filled = [filled] if tf.is_tensor(filled) else filled  # one comes alone
    shapes = [*(shape for shape, _ in outputs), *([sums] if sums else [])]
    for x, shape in zip(filled, shapes, strict=True):
        x.set_shape([n if isinstance(n, int) else None for n in shape])
    return filled


def like(x):
    """Returns the description of an output with the shape and type of a tensor."""
    return ops.shape(x), x.dtype


def numbers(x):
    """Shows a kernel the bits of bfloat16 numbers, which Numba does not know."""
    return x.view(np.uint16) if x.dtype == ml_dtypes.bfloat16 else x


def empty(shape, dtype):
    """Makes an array that TensorFlow need not copy."""
    dtype = np.dtype(dtype.as_numpy_dtype)
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)


def float32(*tensors):
    """Returns each tensor or variable in float32."""
    return [tf.cast(x, tf.float32) for x in tensors]


def key_of(seed):
    """Returns two random words from a `SeedGenerator`; without one, any two."""
    if seed is None:
        return tf.zeros((2,), tf.uint32)
    return tf.cast(tf.convert_to_tensor(seed.next()), tf.uint32)
