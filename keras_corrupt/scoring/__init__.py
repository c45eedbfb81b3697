"""Scoring: what a pretrained model, as it is, says of texts."""

from keras_corrupt.scoring.highlight import highlight
from keras_corrupt.scoring.minimal_pairs import Pair, accuracies, read_pairs
from keras_corrupt.scoring.reranking import NBest, Reranking, read_n_best, rerank
from keras_corrupt.scoring.words import WordScore, replaced_words

#: What needs Keras.
LIKELIHOODS = (
    *("ScoredTokens", "conditional_score", "score_sentences", "token_scores"),
    "word_scores",
)

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
    *LIKELIHOODS,
]


def __getattr__(name):
    # Without Keras the commands' help is there at once.
    if name in LIKELIHOODS:
        from keras_corrupt.scoring import likelihoods

        return getattr(likelihoods, name)
    raise AttributeError(f"module 'keras_corrupt.scoring' has no attribute {name!r}")
