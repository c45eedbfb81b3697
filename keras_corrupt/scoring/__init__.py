"""Scoring: what a pretrained model, as it is, says of texts."""

import lazy_loader

from keras_corrupt.scoring.highlight import highlight
from keras_corrupt.scoring.minimal_pairs import Pair, accuracies, read_pairs
from keras_corrupt.scoring.reranking import NBest, Reranking, read_n_best, rerank
from keras_corrupt.scoring.words import WordScore, replaced_words

# On first use: without Keras the commands' help is there at once.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "acceptability": ["acceptabilities"],
        "embeddings": ["embed_texts"],
        "likelihoods": [
            "ScoredTokens",
            "conditional_score",
            "score_sentences",
            "token_scores",
            "word_scores",
        ],
    },
)
__all__ += [
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
]
