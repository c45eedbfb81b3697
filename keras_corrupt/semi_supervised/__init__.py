"""Semi-supervised learning: Cross-View Training (Clark's thesis, chapter 4)."""

import importlib

from keras_corrupt.semi_supervised.cross_view import CrossViewConfig, main

_MODULES = {"CrossViewTagger": "tagger", "train_tagger": "runner"}

__all__ = ["CrossViewConfig", "CrossViewTagger", "main", "train_tagger"]


def __getattr__(name):
    # On first use: a recipe's help needs no Keras.
    if name in _MODULES:
        module = importlib.import_module(f"{__name__}.{_MODULES[name]}")
        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return __all__
