"""A trial of all that the kernels need, before a training step relies on it."""

import numpy as np
import tensorflow as tf

from keras_corrupt.cpu_kernels.compiling import compiled
from keras_corrupt.cpu_kernels.numbers import load, store
from keras_corrupt.cpu_kernels.program import like, run


def try_operation():
    """Compiles and runs a small kernel.

    Raises:
        RuntimeError: It computes something else than it should.
    """
    with tf.init_scope(), tf.device("CPU:0"):  # now, not in the graph that is traced
        x = tf.range(5.0)
        (doubled,) = run(_double, [x], [like(x)])
        if doubled.numpy().tolist() != (2 * np.arange(5.0)).tolist():
            raise RuntimeError("a trial gave wrong numbers")


@compiled
def _double(first, x, out):
    for i in range(len(x)):
        store(out, i, load(x[i]) + load(x[i]))
