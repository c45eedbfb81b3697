"""Several tasks with one model, and what it learns of others. Start with README.md."""

import importlib

from keras_corrupt.multitask.config import MultiTaskConfig
from keras_corrupt.multitask.strategies import STRATEGIES, Strategy

_MODULES = {"MultiTaskModel": "multi_task_model", "run": "runs"}

__all__ = ["STRATEGIES", "MultiTaskConfig", "MultiTaskModel", "Strategy", "run"]


def __getattr__(name):
    # On first use: a recipe's help needs no Keras.
    if name in _MODULES:
        module = importlib.import_module(f"{__name__}.{_MODULES[name]}")
        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return __all__
