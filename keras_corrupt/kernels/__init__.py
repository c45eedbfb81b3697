"""What a training step does between its matrix products, sampling, Adam's update.

The layers, and `plain` for what is no layer, say in `keras.ops` what is computed; that
is what JAX, GPUs and TPUs run, and inference. `fused` computes the same on TensorFlow
and CPUs in fewer passes over memory. Its functions cannot be part of a step that XLA
compiles as a whole, and outside a graph each call makes one, so they are chosen by
`FusedTraining`, whose `fit` knows.
"""

import contextlib
import contextvars
import sys

import keras

from keras_corrupt.devices.accelerators import accelerators
from keras_corrupt.kernels import plain

if keras.backend.backend() == "tensorflow" and sys.platform != "win32":
    import tensorflow as tf

    from keras_corrupt.kernels import fused
else:
    fused = plain

_active = contextvars.ContextVar("kernels", default=plain)


def active():
    """Returns the module to take the kernels from."""
    return _active.get()


@contextlib.contextmanager
def use(kernels):
    """Chooses the module for what is traced or run inside."""
    token = _active.set(kernels)
    try:
        yield
    finally:
        _active.reset(token)


class FusedTraining:
    """Makes a model's `fit` use the fused kernels where they can run."""

    def train_step(self, *args):
        can_run = (
            fused is not plain
            and not tf.executing_eagerly()
            and not self.jit_compile
            and self.compute_dtype in ("float32", "bfloat16")
            and not accelerators()
        )
        with use(fused if can_run else plain):
            return super().train_step(*args)
