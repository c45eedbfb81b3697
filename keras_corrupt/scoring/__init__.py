"""Scoring: what a pretrained model, as it is, says of texts."""

from keras_corrupt.scoring.highlight import highlight
from keras_corrupt.scoring.words import WordScore, word_scores

__all__ = ["WordScore", "highlight", "word_scores"]
