"""Classes by the names under which presets, recipes and results know them.

A class of this package goes by its own name, `Electra`; any other by the name that
`keras.saving.register_keras_serializable` gave it, `my_package>MyObjective`.
"""

import importlib
import os
import sys

import keras

_PACKAGE = "keras_corrupt>"
#: The rooms of this package whose classes presets name.
_ROOMS = ("models", "downstream", "multitask", "cross_view")


def registered_name(cls):
    """Returns the name under which `find_class` finds a class."""
    return keras.saving.get_registered_name(cls).removeprefix(_PACKAGE)


def import_class(name, base):
    """Finds a class that a person named; imports its module if they named that, too.

    Args:
        name: What `registered_name` returned, or `module:Class`.
        base: The class that it must be derived from.

    Returns:
        The class.

    Raises:
        ValueError: There is none.
    """
    module, colon, attribute = name.partition(":")
    if not colon:
        return find_class(name, base)
    if os.getcwd() not in sys.path:  # an installed command does not look here
        sys.path.append(os.getcwd())
    try:
        cls = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{name!r} cannot be imported: {error}.") from error
    return _checked(cls, name, base)


def find_class(name, base):
    """Finds a registered class, or one of this package, which it imports.

    It imports nothing else, so that a file may hold the name.

    Args:
        name: What `registered_name` returned.
        base: The class that it must be derived from.

    Returns:
        The class.

    Raises:
        ValueError: There is none; the error lists those there are.

    Example:

    >>> from keras_corrupt.models import Pretrainer
    >>> find_class("Electra", Pretrainer).__name__
    'Electra'
    """
    if ">" in name:
        return _checked(keras.saving.get_registered_object(name), name, base)
    rooms = (importlib.import_module(f"keras_corrupt.{room}") for room in _ROOMS)
    candidates = (getattr(room, name, None) for room in rooms)
    return _checked(next(filter(None, candidates), None), name, base)


def known_classes(base):
    """Returns all registered classes that are derived from one."""
    objects = keras.saving.get_custom_objects().values()
    return [cls for cls in objects if isinstance(cls, type) and issubclass(cls, base)]


def _checked(candidate, name, base):
    if not (isinstance(candidate, type) and issubclass(candidate, base)):
        names = sorted(registered_name(cls) for cls in known_classes(base))
        raise ValueError(
            f"{name!r} is none of the known classes, {', '.join(names)}. One that is "
            "defined elsewhere goes by module:Class, or is known once its module has "
            "been imported."
        )
    return candidate
