"""Fine-tuning and evaluation of pretrained encoders. Start with README.md here."""

import importlib

from keras_corrupt.downstream.finetune import FinetuneConfig, finetune, main

_MODULES = {
    "CandidateRanker": "candidate_ranker",
    "PromptClassifier": "prompt_classifier",
    "SpanExtractor": "span_extractor",
    "TextClassifier": "text_classifier",
    "TokenTagger": "token_tagger",
}

__all__ = [
    "CandidateRanker",
    "FinetuneConfig",
    "PromptClassifier",
    "SpanExtractor",
    "TextClassifier",
    "TokenTagger",
    "finetune",
    "main",
]


def __getattr__(name):
    # On first use: a recipe's help needs no Keras.
    if name in _MODULES:
        module = importlib.import_module(f"{__name__}.{_MODULES[name]}")
        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return __all__
