"""Kernels for JAX on NVIDIA GPUs, a guest: see `devices.guests`.

They compute the layers of BERT's Transformer, but for rounding, in fewer passes over
memory and fewer kernels. No GPU has run them yet, so that they are off unless the
environment variable `KERAS_CORRUPT_LAYER_KERNELS` is `on`.
"""

import os

#: The environment variable that turns the kernels on.
SWITCH = "KERAS_CORRUPT_LAYER_KERNELS"


def replacements(model):
    """Returns what the kernels replace in a step of a model that begins now.

    Raises:
        ValueError: The environment variable has another value.
    """
    if (choice := os.environ.get(SWITCH, "")) not in ("", "on", "off"):
        raise ValueError(f"{SWITCH} must be on, off or not set; got {choice!r}.")
    if choice != "on":
        return {}
    import keras

    from keras_corrupt.devices import flash_attention

    # Several devices would need a kernel each for their texts.
    if not flash_attention.is_available() or keras.distribution.distribution():
        return {}
    from keras_corrupt.gpu_kernels.table import REPLACEMENTS

    return REPLACEMENTS
