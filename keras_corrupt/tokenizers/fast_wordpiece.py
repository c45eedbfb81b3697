"""Word pieces by TensorFlow Text, which is faster, where they are the same.

Its `FastWordpieceTokenizer` cuts words in linear time (Song et al., 2021, Fast
WordPiece Tokenization), but its normalisation is not all of BERT's: it folds … to three
dots and ß to ss. So both libraries are asked about each character, before it first goes
this way, and texts that have one on which they disagree are left to BERT's way.
"""

import functools
import itertools
import sys
import unicodedata
from collections.abc import Callable, Sequence

import numpy as np
from tokenizers.pre_tokenizers import BertPreTokenizer

from keras_corrupt.tokenizers.wordpiece import INSIDE, word_piece_engine

_UNASKED, _SAME, _DIFFERENT = range(3)
_NUM_CODES = 0x110000
_PAGE = 0x1000  # asked at once, because each time takes a while
_UNKNOWN = "[UNK]"


class FastWordPieces:
    """Gives the ids of a `WordPieceTokenizer`, where TensorFlow Text gives the same.

    Args:
        tokenizer: The `WordPieceTokenizer`.

    Raises:
        ImportError: TensorFlow Text cannot be loaded.
        RuntimeError: It does not take the vocabulary.
    """

    def __init__(self, tokenizer):
        tokens = [(t, i) for i, t in enumerate(tokenizer.vocabulary) if _reachable(t)]
        self._encode = _encoder([token for token, _ in tokens], tokenizer.flags)
        self._unknown_id = tokenizer.unknown_id
        self._ids = np.array([*(i for _, i in tokens), self._unknown_id], "int32")
        self._characters = _characters(**tokenizer.flags)

    def encode_flat(
        self, texts: Sequence[str]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Encodes the texts on which the two libraries agree, without special tokens.

        Args:
            texts: Any strings.

        Returns:
            The token ids of these texts, int32 [tokens]; how many are each text's,
            int64 [texts], 0 of the others; and which texts these are, bool [texts].
        """
        done = self._characters.agree(texts)
        agreed = np.flatnonzero(done)
        ids, splits = self._encode([texts[i] for i in agreed.tolist()])
        ids, lengths = self._ids[ids], np.diff(splits)
        # A word of more than 100 bytes is unknown to the one library, one of more than
        # 100 characters to the other.
        unknown = np.flatnonzero(ids == self._unknown_id)
        is_known = np.ones(len(agreed), bool)
        is_known[np.searchsorted(splits[1:], unknown, "right")] = False
        done[agreed] = is_known
        ids = ids[np.repeat(is_known, lengths)]
        of_all = np.zeros(len(texts), "int64")
        of_all[agreed] = lengths * is_known
        return ids, of_all, done


class Characters:
    """Knowledge of the characters on which the two libraries agree.

    Args:
        lowercase: See `WordPieceTokenizer`.
        strip_accents: See `WordPieceTokenizer`.
        language_neutral: See `WordPieceTokenizer`.
    """

    def __init__(self, lowercase: bool, strip_accents: bool, language_neutral: bool):
        self._flags = {
            "lowercase": lowercase,
            "strip_accents": strip_accents,
            "language_neutral": language_neutral,
        }
        self._states = np.full(_NUM_CODES, _UNASKED, "uint8")

    def agree(self, texts: Sequence[str]) -> np.ndarray:
        """Tells for which texts the libraries agree on all characters.

        Args:
            texts: Any strings.

        Returns:
            bool [texts].
        """
        joined = "".join(texts).encode("utf-32-le")
        codes = np.frombuffer(joined, "<u4")
        states = self._states[codes]
        if (unasked := states == _UNASKED).any():
            for page in np.unique(codes[unasked] // _PAGE).tolist():
                self._ask(range(page * _PAGE, (page + 1) * _PAGE))
            states = self._states[codes]
        ends = np.cumsum([len(text) for text in texts])
        result = np.ones(len(texts), bool)
        result[np.searchsorted(ends, np.flatnonzero(states == _DIFFERENT), "right")] = 0
        return result

    def _ask(self, codes):
        """Compares what the libraries make of each character between two letters."""
        self._states[codes.start : codes.stop] = _DIFFERENT
        letters = [chr(code) for code in codes if not 0xD800 <= code < 0xE000]
        texts = [f"a{letter}a" for letter in letters]
        # A vocabulary of letters shows all that is done to a text.
        normalize = word_piece_engine([_UNKNOWN], _UNKNOWN, **self._flags).normalizer
        seen = {"a", *"".join(map(normalize.normalize_str, texts))}
        tokens = [*seen, *(INSIDE + letter for letter in seen)]
        tokens = sorted(token for token in tokens if _reachable(token))
        engine = word_piece_engine([*tokens, _UNKNOWN], _UNKNOWN, **self._flags)
        definition = engine.encode_batch_fast(texts, add_special_tokens=False)
        ids, splits = _encoder(tokens, self._flags)(texts)
        spans = itertools.pairwise(splits)
        for letter, one, (start, stop) in zip(letters, definition, spans, strict=True):
            other = ids[start:stop].tolist()
            same = one.ids == other and len(tokens) not in other  # none is unknown
            if same and not self._minds_neighbours(letter):
                self._states[ord(letter)] = _SAME

    def _minds_neighbours(self, letter):
        """Whether what becomes of a character may depend on those beside it."""
        if not self._flags["language_neutral"]:
            return letter == "Σ"  # when Python makes it small
        # NFC and NFKC put letters and their marks together.
        parts = unicodedata.normalize("NFKD", letter)
        return any(
            unicodedata.category(part)[0] in "MC"
            or "\u1100" <= part <= "\u11ff"
            or part > "\uffff"
            for part in (letter, *parts)
        )


@functools.cache
def _characters(**flags):
    return Characters(**flags)


def _encoder(
    tokens: Sequence[str], flags: dict[str, bool]
) -> Callable[[Sequence[str]], tuple[np.ndarray, np.ndarray]]:
    """Returns a function of texts: ids, int32, the unknown last; and row splits."""
    import tensorflow as tf
    import tensorflow_text

    if "keras" in sys.modules:  # It may compute with JAX, which needs the GPU.
        from keras_corrupt.devices.accelerators import leave_to_jax

        leave_to_jax()
    lowercase, strip_accents = flags["lowercase"], flags["strip_accents"]
    normalizer = _normalizer(lowercase and strip_accents)  # it does both or neither
    with tf.init_scope(), tf.device("CPU"):
        pieces = tensorflow_text.FastWordpieceTokenizer(
            [*tokens, _UNKNOWN], token_out_type=tf.int32
        )

    def encode(texts):
        if lowercase and not strip_accents:
            texts = [text.lower() for text in texts]
        with tf.init_scope(), tf.device("CPU"):
            texts = normalizer.normalize(tf.constant(texts, tf.string))
            ids = pieces.tokenize(texts)
        return ids.values.numpy(), ids.row_splits.numpy()

    return encode


@functools.cache
def _normalizer(lowercase_and_strip_accents):
    import tensorflow as tf
    import tensorflow_text

    with tf.init_scope(), tf.device("CPU"):
        return tensorflow_text.FastBertNormalizer(lowercase_and_strip_accents)


def _reachable(token: str) -> bool:
    """Whether a text can have a token: it is one word, or the inside of one.

    TensorFlow Text takes no others.
    """
    inside = token.startswith(INSIDE)
    word = "a" * inside + token.removeprefix(INSIDE)
    pieces = BertPreTokenizer().pre_tokenize_str(word)
    whole = pieces == [(word, (0, len(word)))]
    return whole and word.isprintable() and len(word) > inside
