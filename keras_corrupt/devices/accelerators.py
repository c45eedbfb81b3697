"""Which accelerators this machine has."""

import keras


def accelerators():
    """Returns the names of the GPUs and TPUs here."""
    return [d for d in keras.distribution.list_devices() if "cpu" not in d.lower()]


def leave_to_jax():
    """Keeps TensorFlow, where something loads it, off the GPUs that JAX computes on.

    It would take all of their memory.
    """
    import tensorflow as tf

    if keras.backend.backend() == "jax" and tf.config.get_visible_devices("GPU"):
        tf.config.set_visible_devices([], "GPU")
