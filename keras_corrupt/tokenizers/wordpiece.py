"""BERT's word pieces."""

import functools
import itertools
import json
import os
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata

import numpy as np
import tokenizers
from tokenizers import normalizers

from keras_corrupt.tokenizers.fingerprints import sha256
from keras_corrupt.tokenizers.flat_ids import flattened, unflattened
from keras_corrupt.tokenizers.reading import read_vocabulary
from keras_corrupt.tokenizers.roles import SPECIAL_TOKENS, find_roles
from keras_corrupt.tokenizers.tokenizer import Tokenizer
from keras_corrupt.tokenizers.vocabulary import train_word_pieces

VOCABULARY_FILE = "vocab.txt"
INSIDE = "##"  # before a piece that continues a word
# Starting TensorFlow Text takes as long as encoding so many characters without it, if
# TensorFlow is loaded and if it is not; and calling it, so many of one batch.
_START, _START_ALONE, _CALL = 2_000_000, 20_000_000, 4_000


class WordPieceTokenizer(Tokenizer):
    """Splits text into the word pieces of a vocabulary, as BERT does.

    Text is normalised (control characters removed, white space unified; lower-cased
    and stripped of accents if asked), split at white space and punctuation, and each
    word is cut greedily into the longest pieces known; pieces inside a word carry the
    prefix `##`. A word that cannot be cut becomes `[UNK]`.

    Args:
        vocabulary: The tokens, in the order of their ids, the special ones at any
            place.
        lowercase: Whether to lower-case text.
        strip_accents: Whether to remove combining marks (é to e). Turn it off for
            scripts whose vowels are combining marks, such as Devanagari.
        language_neutral: Whether to treat every script alike: text is brought to the
            Unicode form NFKC and CJK ideographs are not split off as words of their
            own, which is BERT's rule otherwise.
        roles: See `Tokenizer`.

    Raises:
        ValueError: If the vocabulary is empty, repeats a token or lacks a special
            token.

    Example:
    >>> tokenizer = WordPieceTokenizer(
    ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s"])
    >>> tokenizer.encode("The cats!")
    [5, 6, 7, 1]
    >>> tokenizer.decode([5, 6, 7])
    'the cats'
    """

    kind = "wordpiece"
    flag_names = ("lowercase", "strip_accents", "language_neutral")

    def __init__(
        self,
        vocabulary: Sequence[str],
        lowercase: bool = True,
        strip_accents: bool = True,
        language_neutral: bool = False,
        roles: Mapping[str, str] | None = None,
    ):
        _check_tokens(vocabulary)
        self.lowercase = bool(lowercase)
        self.strip_accents = bool(strip_accents)
        self.language_neutral = bool(language_neutral)
        unknown_token = find_roles(vocabulary, roles)["unknown"]
        engine = word_piece_engine(vocabulary, unknown_token, **self.flags)
        super().__init__(engine, roles)
        self._characters = 0

    @classmethod
    def train(
        cls,
        lines: Iterable[str],
        vocabulary_size: int = 30522,
        lowercase: bool = True,
        strip_accents: bool = True,
        language_neutral: bool = False,
        max_train_bytes: int = 200_000_000,
        progress: bool = False,
    ) -> "WordPieceTokenizer":
        """Learns a vocabulary; the same lines always give the same one.

        Args:
            lines: Any text, in pieces of any length; read once.
            vocabulary_size: Tokens wanted. A small corpus gives fewer.
            lowercase: See the class.
            strip_accents: See the class.
            language_neutral: See the class.
            max_train_bytes: Text to train on, in UTF-8 bytes. From more text an evenly
                spread sample of half to all of this size is used and held in memory.
            progress: Whether a terminal shows bars of progress.

        Returns:
            The tokenizer.

        Raises:
            ValueError: If there is no text, or the vocabulary has no room for the
                letters.
        """
        flags = dict(
            lowercase=lowercase,
            strip_accents=strip_accents,
            language_neutral=language_neutral,
        )
        vocabulary = train_word_pieces(
            lines,
            normalizer=_normalizer(**flags),
            vocabulary_size=vocabulary_size,
            special_tokens=SPECIAL_TOKENS,
            unknown_token=find_roles(SPECIAL_TOKENS)["unknown"],
            max_bytes=max_train_bytes,
            progress=progress,
        )
        return cls(vocabulary, **flags)

    @classmethod
    def from_engine(
        cls, engine: tokenizers.Tokenizer, roles: Mapping[str, str] | None = None
    ) -> "WordPieceTokenizer":
        """Takes the vocabulary and the flags; see `Tokenizer.from_engine`."""
        if any(not t.special for t in engine.get_added_tokens_decoder().values()):
            raise ValueError("it adds tokens that are not special to the vocabulary.")
        bert = engine.normalizer
        if isinstance(bert, normalizers.BertNormalizer) and bert.strip_accents is None:
            bert.strip_accents = bert.lowercase  # what BERT does if not told
        ids = engine.get_vocab(with_added_tokens=True)
        for values in itertools.product((False, True), repeat=len(cls.flag_names)):
            flags = dict(zip(cls.flag_names, values, strict=True))
            if _state(_normalizer(**flags)) == _state(bert):
                break
        tokenizer = cls(sorted(ids, key=ids.get), **flags, roles=roles)
        ours, theirs = (json.loads(e.to_str()) for e in (tokenizer.engine, engine))
        del ours["model"]["vocab"], theirs["model"]["vocab"]
        for part in ("normalizer", "pre_tokenizer", "model"):
            if ours[part] != theirs[part]:
                raise ValueError(
                    f"its {part} is not one of BERT's, but {theirs[part]}. Train a "
                    "vocabulary, or give the vocab.txt alone."
                )
        return tokenizer

    @classmethod
    def from_saved(cls, directory: str | os.PathLike, settings: dict):
        """Reads `vocab.txt`; see `Tokenizer.from_saved`."""
        vocabulary = read_vocabulary(os.path.join(directory, VOCABULARY_FILE))
        return cls(vocabulary, **settings["flags"], roles=settings["roles"])

    def files(self) -> dict[str, str]:
        """Returns the files of a saved tokenizer, `vocab.txt` besides the others."""
        lines = "".join(f"{token}\n" for token in self.vocabulary)
        return {VOCABULARY_FILE: lines, **super().files()}

    def _encode_batch(self, texts):
        return unflattened(*self._encode_flat(texts))

    def _encode_flat(self, texts):
        # After the first megabytes, or as soon as so much text is expected, most texts
        # go through TensorFlow Text, where it is installed. The ids are the same.
        size = sum(map(len, texts))
        self.expect(size)
        start = _START if "tensorflow" in sys.modules else _START_ALONE
        if size < _CALL or self._characters < start or not self._fast:
            return flattened(super()._encode_batch(texts))
        fast, lengths, done = self._fast.encode_flat(texts)
        left = np.flatnonzero(~done)
        slow, lengths[left] = flattened(
            super()._encode_batch([texts[number] for number in left.tolist()])
        )
        is_fast = np.repeat(done, lengths)
        token_ids = np.empty(len(is_fast), "int32")
        token_ids[is_fast], token_ids[~is_fast] = fast, slow
        return token_ids, lengths

    def expect(self, characters: int) -> None:
        """See `Tokenizer`."""
        self._characters += characters

    @functools.cached_property
    def _fast(self):
        if self.why_slow:
            return None
        from keras_corrupt.tokenizers.fast_wordpiece import FastWordPieces

        try:
            return FastWordPieces(self)
        except (ImportError, RuntimeError) as error:
            reason = str(error).splitlines()[0]
            warnings.warn(f"Not using TensorFlow Text: {reason}", stacklevel=3)
            return None

    @property
    def why_slow(self) -> str | None:
        """See `Tokenizer`."""
        return missing_text_library()

    def __getstate__(self):
        return {key: value for key, value in vars(self).items() if key != "_fast"}

    @property
    def flags(self) -> dict[str, bool]:
        """The three normalisation flags by name."""
        return {flag: getattr(self, flag) for flag in self.flag_names}

    @property
    def fingerprint(self) -> str:
        """SHA-256 over vocabulary and flags: equal means equal encodings."""
        return sha256([*self.vocabulary, json.dumps(self.flags, sort_keys=True)])

    def _begins_word(self, token):
        return not token.startswith(INSIDE)

    def _spaced(self, tokens):
        return "".join(
            token.removeprefix(INSIDE) if token.startswith(INSIDE) else f" {token}"
            for token in tokens
        )


def word_piece_engine(
    vocabulary: Sequence[str], unknown_token: str, **flags: bool
) -> tokenizers.Tokenizer:
    """Makes the engine that defines what the word pieces of a text are.

    Args:
        vocabulary: The tokens, in the order of their ids.
        unknown_token: That among them which stands for unknown words.
        **flags: See `WordPieceTokenizer`.

    Returns:
        The engine.
    """
    ids = {token: index for index, token in enumerate(vocabulary)}
    model = tokenizers.models.WordPiece(ids, unk_token=unknown_token)
    engine = tokenizers.Tokenizer(model)
    engine.normalizer = _normalizer(**flags)
    engine.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    engine.decoder = tokenizers.decoders.WordPiece(INSIDE)
    return engine


@functools.cache
def missing_text_library() -> str | None:
    """Returns why TensorFlow Text cannot be used, or None; imports nothing large."""
    try:
        versions = [
            metadata.version(name) for name in ("tensorflow", "tensorflow-text")
        ]
    except metadata.PackageNotFoundError as error:
        return f"{error.name} is not installed (pip install 'tensorflow-text==2.20.*')"
    if len({tuple(version.split(".")[:2]) for version in versions}) > 1:
        return "TensorFlow {} and TensorFlow Text {} do not fit".format(*versions)
    return None


def _normalizer(lowercase: bool, strip_accents: bool, language_neutral: bool):
    bert = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=not language_neutral,
        strip_accents=strip_accents,
        lowercase=lowercase,
    )
    if not language_neutral:
        return bert
    # Stripping accents decomposes letters; the last step puts the others together.
    return normalizers.Sequence([normalizers.NFKC(), bert, normalizers.NFC()])


def _state(normalizer) -> bytes | None:
    return normalizer and normalizer.__getstate__()


def _check_tokens(vocabulary: Sequence[str]) -> None:
    if not vocabulary:
        raise ValueError("the vocabulary is empty.")
    repeated = [token for token, count in Counter(vocabulary).items() if count > 1]
    if repeated:
        raise ValueError(f"the vocabulary repeats tokens: {repeated[:10]}.")
