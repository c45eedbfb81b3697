"""Tokenizers: text to token ids and back.

`Tokenizer` is the protocol; `WordPieceTokenizer`, `ByteBPETokenizer` and
`UnigramTokenizer` are the kinds of vocabularies, each with its own `train`. `load`
reads a tokenizer that was saved, `from_file` a vocabulary from elsewhere.
"""

from keras_corrupt.tokenizers.byte_bpe import ByteBPETokenizer
from keras_corrupt.tokenizers.files import KINDS, from_file, load
from keras_corrupt.tokenizers.roles import SPECIAL_TOKENS
from keras_corrupt.tokenizers.tokenizer import Tokenizer
from keras_corrupt.tokenizers.unigram import UnigramTokenizer
from keras_corrupt.tokenizers.wordpiece import WordPieceTokenizer

__all__ = [
    "KINDS",
    "SPECIAL_TOKENS",
    "ByteBPETokenizer",
    "Tokenizer",
    "UnigramTokenizer",
    "WordPieceTokenizer",
    "from_file",
    "load",
]
