"""Several tasks with one model, and what it learns of others. Start with README.md."""

import lazy_loader

from keras_corrupt.multitask.config import MultiTaskConfig
from keras_corrupt.multitask.strategies import STRATEGIES, Strategy

# On first use: a recipe's help needs no Keras.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "multi_task_model": ["MultiTaskModel"],
        "runs": ["run"],
    },
)
__all__ += ["MultiTaskConfig", "STRATEGIES", "Strategy"]
