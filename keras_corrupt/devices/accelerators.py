"""Which accelerators this machine has."""

import keras


def accelerators():
    """Returns the names of the GPUs and TPUs here."""
    return [d for d in keras.distribution.list_devices() if "cpu" not in d.lower()]
