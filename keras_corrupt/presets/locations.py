"""Where a preset is: in its directory, or known by a name or an address."""

import hashlib
from pathlib import Path

import keras

from keras_corrupt.presets.registry import known_classes
from keras_corrupt.presets.sources import made_preset


def trained_presets():
    """Returns the trained presets of all systems that are known: name -> directory."""
    return {
        name: directory
        for cls in known_classes(keras.Model)
        for name, directory in getattr(cls, "trained_presets", {}).items()
    }


def directory_of(preset):
    """Returns the directory of a preset.

    Args:
        preset: The name of a trained one, or a path or address that other libraries
            wrote, which is converted into a preset for as long as the process runs.
            Anything else, such as a preset's own path, is returned as it is.

    Raises:
        ValueError: What another library wrote cannot be converted.
    """
    return made_preset(trained_presets().get(preset, preset))


def content_hash(preset):
    """Returns a hash of a preset's files, the same wherever they are."""
    digest = hashlib.sha256()
    for path in sorted(Path(directory_of(preset)).rglob("*")):
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
