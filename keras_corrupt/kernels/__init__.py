"""What a step does between its matrix products, sampling, Adam's update.

The layers, and `plain` for what is no layer, say in `keras.ops` what is computed; that
is what JAX, GPUs and TPUs run, and what is exported. `fused` computes the same on
TensorFlow and CPUs in fewer passes over memory. Its functions cannot be part of a step
that XLA compiles as a whole, and outside a graph each call makes one, so they are
chosen by `fused_steps`: the steps know.

`fused` is a guest: it loads when a first step asks for it, and where it cannot, steps
go on with `plain`.
"""

import contextlib
import contextvars
import functools
import os
import sys

import keras

from keras_corrupt.devices.accelerators import accelerators
from keras_corrupt.kernels import plain

#: The environment variable that turns the fused kernels off if it is "plain".
SWITCH = "KERAS_CORRUPT_KERNELS"

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


@functools.cache
def fused_kernels():
    """Loads the fused kernels; says once on stderr why, if they cannot be loaded.

    Returns:
        The module `fused`, or `None` if it cannot be loaded, if the environment
        variable `KERAS_CORRUPT_KERNELS` is `plain`, or if TensorFlow is not the
        backend.

    Raises:
        ValueError: The environment variable has another value.
    """
    switch = os.environ.get(SWITCH, "")
    if switch not in ("", "plain"):
        raise ValueError(
            f"{SWITCH}={switch!r}: set it to 'plain' to turn the fused kernels off, or "
            "not at all."
        )
    if switch or keras.backend.backend() != "tensorflow":
        return None
    try:
        from keras_corrupt.kernels import fused
        from keras_corrupt.kernels.fused.trial import try_operation

        try_operation()
        return fused
    # Whatever goes wrong in a compiler or in TensorFlow's C interface: `plain` works.
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        print(
            f"keras_corrupt: no fused kernels, steps are slower: {reason}",
            file=sys.stderr,
        )
        return None


def fused_steps(cls):
    """Makes a model's steps use the fused kernels where they can run.

    Training, evaluation and prediction (`fit`, `evaluate`, `predict`,
    `predict_on_batch`) do; a plain call and what is exported do not.

    Args:
        cls: A class derived from `keras.Model`, which is decorated.

    Returns:
        The class.
    """
    for name in ("train_step", "test_step", "predict_step"):
        setattr(cls, name, _with_kernels(getattr(cls, name)))
    return cls


def _with_kernels(step):
    @functools.wraps(step)
    def with_kernels(model, *args):
        with use(_kernels_of(model)):
            return step(model, *args)

    return with_kernels


def _kernels_of(model):
    can_run = (
        keras.backend.backend() == "tensorflow"
        and not model.jit_compile
        and model.compute_dtype in ("float32", "bfloat16")
        and _in_graph_without_xla()
        and not accelerators()
    )
    return (fused_kernels() if can_run else None) or plain


def _in_graph_without_xla():
    """Returns whether TensorFlow makes a graph now, and XLA will not compile it."""
    import tensorflow as tf

    if tf.executing_eagerly():
        return False
    try:
        from tensorflow.python.ops.control_flow_util import GraphOrParentsInXlaContext
    except ImportError:  # it is not public; without it only the model's setting counts
        return True
    return not GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph())
