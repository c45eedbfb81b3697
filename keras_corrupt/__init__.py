"""Pretraining of text encoders by corrupting text, in Keras 3.

>>> import keras_corrupt
>>> model = keras_corrupt.models.Electra.from_preset("tiny")
"""

import lazy_loader

from keras_corrupt import keras_classes
from keras_corrupt.convert import foreign
from keras_corrupt.presets.locations import register_source
from keras_corrupt.version import __version__

# The parts load on first use: data preparation runs in many small processes, none of
# which needs Keras.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=[
        "convert",
        "corruption",
        "cross_view",
        "data",
        "devices",
        "downstream",
        "encoders",
        "evaluation",
        "models",
        "multitask",
        "presets",
        "scoring",
        "tasks",
        "tokenizers",
        "training",
    ],
)
__all__ += ["__version__"]

#: Part -> its classes that a `.keras` file can name, before anything is imported.
KERAS_CLASSES = {
    "encoders": ("Dense", "GatedDense", "TransformerEncoder"),
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
    "cross_view": (
        "BiLSTMEncoder",
        "CrossViewImageClassifier",
        "CrossViewParser",
        "CrossViewTagger",
        "CrossViewTranslator",
    ),
    "training": (
        "AdamW",
        "InverseRootDecay",
        "LateLinearDecay",
        "Muon",
        "SGD",
        "WarmupLinearDecay",
        "WarmupStableDecay",
    ),
    "downstream": (
        "CandidateRanker",
        "MultiLabelClassifier",
        "PromptClassifier",
        "SpanExtractor",
        "TextClassifier",
        "TokenTagger",
    ),
    "multitask": ("MultiTaskModel",),
}

keras_classes.register(KERAS_CLASSES)
register_source(foreign)
