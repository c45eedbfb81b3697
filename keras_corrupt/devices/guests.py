"""Guests compute functions of the core in their own way, in the steps of a model.

The core says what it computes, and marks by `@replaceable` the functions, and the
layers' `call`, that a guest may compute faster. Where a step of a model begins, each
guest says which of them it replaces in this step. A plain call of a model, and a graph
that is exported, compute what the core says.
"""

import contextlib
import contextvars
import functools
import types

_guests = []
_replacements = contextvars.ContextVar(
    "replacements", default=types.MappingProxyType({})
)


def register_guest(guest):
    """Asks a guest from now on.

    Args:
        guest: Function of a model that returns a dict, from the functions that it
            replaces in the model's step to those that take their places.
    """
    _guests.append(guest)


def replaceable(function):
    """Lets a guest replace a function; the function itself is its `__wrapped__`.

    Example:

    >>> @replaceable
    ... def double(x):
    ...     return x + x
    >>> with replaced({double: lambda x: 2.0 * x}):
    ...     double(3)
    6.0
    >>> double(3)
    6
    """

    @functools.wraps(function)
    def call(*args, **kwargs):
        return _replacements.get().get(call, function)(*args, **kwargs)

    return call


@contextlib.contextmanager
def replaced(replacements):
    """Replaces functions while a block of code is traced or run.

    Args:
        replacements: A dict as guests return it.
    """
    token = _replacements.set(replacements)
    try:
        yield
    finally:
        _replacements.reset(token)


def invites_guests(cls):
    """Makes a model ask the guests where a step begins.

    Training, evaluation and prediction (`fit`, `evaluate`, `predict`,
    `predict_on_batch`) make steps.

    Args:
        cls: A class derived from `keras.Model`, which is decorated.

    Returns:
        The class.
    """
    for name in ("train_step", "test_step", "predict_step"):
        setattr(cls, name, _with_guests(getattr(cls, name)))
    return cls


def _with_guests(step):
    @functools.wraps(step)
    def with_guests(model, *args):
        offers = [guest(model) for guest in _guests]
        with replaced({f: other for offer in offers for f, other in offer.items()}):
            return step(model, *args)

    return with_guests
