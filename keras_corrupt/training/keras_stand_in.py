"""A stand-in for Keras, for a process that only asks what constructors take.

Help lists the options of a model, which are its constructor's arguments. Importing
Keras and its backend for that takes seconds. Classes can be defined with this as well,
but nothing else can be done with them.
"""

import sys

_registered = {}


class _Names(type):
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return cls


class Keras(metaclass=_Names):
    """Stands for Keras's modules, classes and functions: it is its own attributes."""

    @staticmethod
    def get_custom_objects():
        return _registered

    @staticmethod
    def get_registered_name(cls):
        return f"{cls.__module__.partition('.')[0]}>{cls.__name__}"

    @staticmethod
    def register_keras_serializable(package):
        def register(cls):
            return _registered.setdefault(f"{package}>{cls.__name__}", cls)

        return register


def install():
    """Puts the stand-in in Keras's place for the rest of the process.

    Where Keras has been imported, it stays.
    """
    sys.modules.setdefault("keras", Keras)
