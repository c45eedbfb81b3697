"""Scoring: what a pretrained model, as it is, says of texts."""

import importlib

from keras_corrupt.scoring.highlight import highlight
from keras_corrupt.scoring.minimal_pairs import Pair, accuracies, read_pairs
from keras_corrupt.scoring.reranking import NBest, Reranking, read_n_best, rerank
from keras_corrupt.scoring.words import WordScore, replaced_words

_LIKELIHOODS = (
    *("ScoredTokens", "conditional_score", "score_sentences", "token_scores"),
    "word_scores",
)
#: What needs Keras -> its module.
_LATER = dict.fromkeys(_LIKELIHOODS, "likelihoods") | {"embed_texts": "embeddings"}

__all__ = [
    "NBest",
    "Pair",
    "Reranking",
    "WordScore",
    "accuracies",
    "highlight",
    "read_n_best",
    "read_pairs",
    "replaced_words",
    "rerank",
    *_LATER,
]


def __getattr__(name):
    # Without Keras the commands' help is there at once.
    if name in _LATER:
        module = importlib.import_module(f"{__name__}.{_LATER[name]}")
        return getattr(module, name)
    raise AttributeError(f"module 'keras_corrupt.scoring' has no attribute {name!r}")
