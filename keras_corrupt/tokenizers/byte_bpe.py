"""Byte-level byte-pair encoding."""

import json
from collections.abc import Iterable, Mapping

import tokenizers
from tokenizers import normalizers, pre_tokenizers

from keras_corrupt.tokenizers.normalization import case_and_accents
from keras_corrupt.tokenizers.roles import SPECIAL_TOKENS
from keras_corrupt.tokenizers.tokenizer import Tokenizer
from keras_corrupt.tokenizers.vocabulary import (
    check_size,
    even_sample,
    is_word_character,
)

# How the vocabulary writes the byte of a space.
_SPACE = "Ġ"
# Words, numbers and other marks, each with the space before it; and other white space.
# As in GPT-2, but the marks of Indic and other scripts stay with their letters.
_PARTS = r" ?[\p{L}\p{M}]+| ?\p{N}+| ?[^\s\p{L}\p{M}\p{N}]+|\s+(?!\S)|\s+"


class ByteBPETokenizer(Tokenizer):
    """Joins the bytes of a text to the pieces of a vocabulary (byte-level BPE).

    No text has an unknown token, for every byte is in the vocabulary. A space belongs
    to the word after it and is written `Ġ`. With a vocabulary trained here the first
    word of a text is encoded as within a sentence, and all white space counts except
    that at the ends of a text.

    Args:
        engine: A `tokenizers.Tokenizer` with a byte-level BPE model.
        roles: See `Tokenizer`.

    Raises:
        ValueError: If the engine is of another kind, or lacks a special token.

    Example:
    >>> tokenizer = ByteBPETokenizer.train(["the cat sat on the mat"] * 2, 300)
    >>> tokenizer.tokens(tokenizer.encode("The cat"))
    ['Ġthe', 'Ġcat']
    >>> tokenizer.decode(tokenizer.encode("a 語 sat"))
    'a 語 sat'
    """

    kind = "byte_bpe"

    def __init__(
        self, engine: tokenizers.Tokenizer, roles: Mapping[str, str] | None = None
    ):
        parts = json.loads(engine.to_str())
        model = parts["model"]
        steps = json.dumps([parts["normalizer"], parts["pre_tokenizer"]])
        on_bytes = '"type": "ByteLevel"' in steps
        if model["type"] != "BPE" or not on_bytes:
            raise ValueError(
                f"it is no byte-level BPE, but a {model['type']} model on "
                f"{'bytes' if on_bytes else 'characters'}."
            )
        if model["end_of_word_suffix"] or model["continuing_subword_prefix"]:
            raise ValueError(
                "it marks the parts of words in another way than by the spaces before "
                "words, which is not supported. Train a vocabulary instead."
            )
        super().__init__(engine, roles)
        self._bytes = tokenizers.decoders.ByteLevel()

    @classmethod
    def train(
        cls,
        lines: Iterable[str],
        vocabulary_size: int = 30522,
        lowercase: bool = True,
        strip_accents: bool = True,
        max_train_bytes: int = 200_000_000,
        progress: bool = False,
    ) -> "ByteBPETokenizer":
        """Learns a vocabulary; the same lines always give the same one.

        Args:
            lines: Any text, in pieces of any length; read once.
            vocabulary_size: Tokens wanted. A small corpus gives fewer.
            lowercase: Whether to lower-case text.
            strip_accents: Whether to remove combining marks (é to e).
            max_train_bytes: Text to train on, in UTF-8 bytes. From more text an evenly
                spread sample of half to all of this size is used and held in memory.
            progress: Whether a terminal shows bars of progress.

        Returns:
            The tokenizer.

        Raises:
            ValueError: If there is no text, or the vocabulary has no room for all
                bytes.
        """
        check_size(vocabulary_size)
        alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
        least = len(SPECIAL_TOKENS) + len(alphabet)
        if vocabulary_size < least:
            raise ValueError(
                f"vocabulary_size={vocabulary_size} has no room for the "
                f"{len(alphabet)} bytes and the special tokens: at least {least} are "
                "needed."
            )
        sample = even_sample(lines, max_train_bytes)
        if not any(line.strip() for line in sample):
            raise ValueError("no text to train a vocabulary on: the corpus is empty.")
        engine = tokenizers.Tokenizer(tokenizers.models.BPE())
        engine.normalizer = normalizers.Sequence(
            [
                *case_and_accents(lowercase, strip_accents),
                normalizers.Strip(),
                normalizers.Prepend(" "),
            ]
        )
        engine.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(tokenizers.Regex(_PARTS), "isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
        engine.decoder = tokenizers.decoders.ByteLevel()
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=vocabulary_size,
            special_tokens=list(SPECIAL_TOKENS),
            initial_alphabet=alphabet,
            min_frequency=2,
            show_progress=progress,
        )
        engine.train_from_iterator(sample, trainer)
        return cls(engine)

    def readable(self, token_id: int) -> str:
        """Returns a token as text, a space at its start as `Ġ`; see `Tokenizer`."""
        token = self._token(token_id)
        if token_id in self.special_ids or token_id >= len(self.vocabulary):
            return token
        text = self._bytes.decode([token])
        if not text.isprintable() or "\ufffd" in text:
            return token  # not to be seen, or a part of a character
        return text.replace(" ", _SPACE)

    def _begins_word(self, token):
        first = self._bytes.decode([token])[:1]
        # A part of a character reads U+FFFD, and is taken for one within a word.
        return not is_word_character(first) and first != "\ufffd"

    def _spaced(self, tokens):
        return self._bytes.decode(list(tokens))
