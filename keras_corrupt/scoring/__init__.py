"""Scoring: what a pretrained model, as it is, says of texts."""

from keras_corrupt.scoring.highlight import highlight
from keras_corrupt.scoring.minimal_pairs import Pair, accuracies, read_pairs
from keras_corrupt.scoring.reranking import NBest, Reranking, read_n_best, rerank
from keras_corrupt.scoring.words import WordScore, word_scores

__all__ = [
    "NBest",
    "Pair",
    "Reranking",
    "WordScore",
    "accuracies",
    "highlight",
    "pseudo_log_likelihoods",
    "read_n_best",
    "read_pairs",
    "rerank",
    "word_scores",
]


def __getattr__(name):
    # It needs Keras, without which the commands' help is there at once.
    if name == "pseudo_log_likelihoods":
        from keras_corrupt.scoring.pseudo_log_likelihood import pseudo_log_likelihoods

        return pseudo_log_likelihoods
    raise AttributeError(f"module 'keras_corrupt.scoring' has no attribute {name!r}")
