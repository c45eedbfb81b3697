"""Kernels for TensorFlow on CPUs, a guest: see `devices.guests`.

They compute the same as functions and layers of the core, but for rounding in the last
digits, in fewer passes over memory. Each loop goes once over its arrays, on all cores,
forward and backward: what it keeps for a row stays in the processor's cache, and
dropout's chance is computed where it is used. The matrix products are TensorFlow's.

`table` lists the functions and layers that kernels replace. Each kernel's file has its
loops, made of `numbers`. `program` makes an operation of a loop, `native` what
TensorFlow calls, `pieces` what `threads` run; `compiling` caches what Numba compiles.

The kernels load when a first step asks for them, and where they cannot, steps go on
without them. They cannot be part of a step that XLA compiles as a whole, and outside a
graph each call makes one.
"""

import functools
import os
import sys

#: The environment variable that turns the kernels off if it is "plain".
SWITCH = "KERAS_CORRUPT_KERNELS"


def replacements(model):
    """Returns what the kernels replace in a step of a model that begins now."""
    import keras

    from keras_corrupt.devices.accelerators import accelerators

    can_run = (
        keras.backend.backend() == "tensorflow"
        and not model.jit_compile
        and model.compute_dtype in ("float32", "bfloat16")
        and _in_graph_without_xla()
        and not accelerators()
    )
    return all_replacements() if can_run else {}


@functools.cache
def all_replacements():
    """Loads the kernels; says once on stderr why, if they cannot be loaded.

    Returns:
        The dict `table.REPLACEMENTS`. It is empty if they cannot be loaded, if the
        environment variable `KERAS_CORRUPT_KERNELS` is `plain`, or if TensorFlow is not
        the backend.

    Raises:
        ValueError: The environment variable has another value.
    """
    import keras

    switch = os.environ.get(SWITCH, "")
    if switch not in ("", "plain"):
        raise ValueError(
            f"{SWITCH}={switch!r}: set it to 'plain' to turn the CPU kernels off, or "
            "not at all."
        )
    if switch or keras.backend.backend() != "tensorflow":
        return {}
    try:
        from keras_corrupt.cpu_kernels.table import REPLACEMENTS
        from keras_corrupt.cpu_kernels.trial import try_operation

        try_operation()
        return REPLACEMENTS
    # Whatever goes wrong in a compiler or in TensorFlow's C interface: steps go on.
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        print(
            f"keras_corrupt: no CPU kernels, steps are slower: {reason}",
            file=sys.stderr,
        )
        return {}


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
