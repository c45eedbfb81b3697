"""Trained presets: models that come with a system, known by a name."""

import keras

from keras_corrupt.models.registry import known_classes


def trained_presets():
    """Returns the trained presets of all systems that are known: name -> directory."""
    return {
        name: directory
        for cls in known_classes(keras.Model)
        for name, directory in getattr(cls, "trained_presets", {}).items()
    }


def directory_of(preset):
    """Returns the directory of a trained preset.

    Args:
        preset: Its name. Anything else, such as a directory's path, is returned as it
            is.
    """
    return trained_presets().get(preset, preset)
