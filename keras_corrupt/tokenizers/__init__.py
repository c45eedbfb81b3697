"""Tokenizers: text to token ids and back."""

from keras_corrupt.tokenizers.wordpiece import SPECIAL_TOKENS, WordPieceTokenizer

__all__ = ["SPECIAL_TOKENS", "WordPieceTokenizer"]
