"""Pretraining of text encoders by corrupting text, in Keras 3.

>>> import keras_corrupt
>>> model = keras_corrupt.models.Electra.from_preset("tiny")
"""

import importlib

from keras_corrupt import keras_classes
from keras_corrupt.version import __version__

__all__ = [
    "__version__",
    "convert",
    "corruption",
    "data",
    "devices",
    "downstream",
    "encoders",
    "evaluation",
    "models",
    "multitask",
    "scoring",
    "semi_supervised",
    "tasks",
    "tokenizers",
    "training",
]

#: Part -> its classes that a `.keras` file can name, before anything is imported.
KERAS_CLASSES = {
    "encoders": ("BiLSTMEncoder", "Dense", "TransformerEncoder"),
    "models": (
        "AdversarialElectra",
        "AllTokensMLM",
        "CocoLM",
        "Electra",
        "ElectraTT",
        "Electric",
        "MaskedLM",
        "ReplaceMLM",
        "Teams",
        "TwoTower",
        "UnigramElectra",
    ),
    "semi_supervised": ("CrossViewTagger",),
    "training": ("AdamW", "InverseRootDecay", "SGD", "WarmupLinearDecay"),
    "downstream": (
        "CandidateRanker",
        "PromptClassifier",
        "SpanExtractor",
        "TextClassifier",
        "TokenTagger",
    ),
    "multitask": ("MultiTaskModel",),
}


def __getattr__(name):
    # The parts load on first use: data preparation runs in many small processes,
    # none of which needs Keras.
    if name in __all__:
        return importlib.import_module(f"keras_corrupt.{name}")
    raise AttributeError(f"module 'keras_corrupt' has no attribute {name!r}")


def __dir__():
    return __all__


keras_classes.register(KERAS_CLASSES)
