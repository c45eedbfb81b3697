"""Training: optimizer, schedules, checkpoints, and the runner of the recipes."""

import importlib

_MODULES = {
    "AdamW": "optimizer",
    "CheckpointError": "checkpoint",
    "Checkpoints": "checkpoint",
    "InverseRootDecay": "schedules",
    "Phase": "phases",
    "PretrainConfig": "config",
    "SGD": "sgd",
    "WarmupLinearDecay": "schedules",
    "main": "command_line",
    "pretrain": "runner",
}

__all__ = sorted(_MODULES)


def __getattr__(name):
    # On first use: a recipe's help needs no Keras.
    if name in _MODULES:
        module = importlib.import_module(f"{__name__}.{_MODULES[name]}")
        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return __all__
