"""Heads: what an objective puts on top of an encoder."""

from keras_corrupt.heads.replaced_token import ReplacedTokenHead
from keras_corrupt.heads.vocabulary import VocabularyHead

__all__ = ["ReplacedTokenHead", "VocabularyHead"]
