"""Where a preset is: in its directory, or known by a name or an address."""

_SOURCES = []


def register_source(source):
    """Lets all that take a preset take something else, too.

    Args:
        source: A module or object with `recognises(name)`, whether a name, path or
            address is one of its own, and `preset_of(name)`, which makes a preset of
            it and returns the directory.
    """
    _SOURCES.append(source)


def trained_presets():
    """Returns the trained presets of all systems that are known: name -> directory."""
    from keras_corrupt.presets.registry import known_classes  # needs Keras

    return {
        name: directory
        for cls in known_classes(object)
        for name, directory in getattr(cls, "trained_presets", {}).items()
    }


def directory_of(preset):
    """Returns the directory of a preset.

    Args:
        preset: The name of a trained one, or what a source recognises, such as other
            libraries' files. Anything else, such as a preset's own path, is returned
            as it is.

    Raises:
        ValueError: The source cannot make a preset of it.
    """
    preset = trained_presets().get(preset, preset)
    for source in _SOURCES:
        if source.recognises(preset):
            return source.preset_of(preset)
    return preset
