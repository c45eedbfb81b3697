"""`WordPieceTokenizer` as TensorFlow operations, for models that leave Python."""

import functools
import unicodedata

import numpy as np
import tensorflow as tf

from keras_corrupt.tokenizers.roles import SPECIAL_TOKENS
from keras_corrupt.tokenizers.wordpiece import WordPieceTokenizer

_REMOVED, _SPACE, _ALONE, _LETTER = range(4)
_NUM_CODES = 0x110000
# Keeps characters apart: a letter that normalisation leaves as it is, and neighbours.
_BARRIER = "\ua000"


class GraphTokenizer:
    """Gives the ids that a `WordPieceTokenizer` gives, inside a TensorFlow graph.

    What BERT's normalisation and splitting do to a character does not depend on its
    neighbours. So the tokenizer itself is asked about every character of Unicode,
    once, and the answers are kept as tables. Words are cut into pieces by
    TensorFlow Text.

    Args:
        tokenizer: A `WordPieceTokenizer`, not one that is `language_neutral`, whose
            normalisation composes neighbouring characters.

    Raises:
        ValueError: The tokenizer is of another kind, or language-neutral.
        ImportError: TensorFlow Text is not installed.
    """

    def __init__(self, tokenizer):
        if not isinstance(tokenizer, WordPieceTokenizer):
            raise ValueError(
                "Only a model on word pieces can be exported with its tokenizer; this "
                f"one's tokenizer is of the kind {tokenizer.kind!r}."
            )
        if tokenizer.language_neutral:
            raise ValueError(
                "A tokenizer with language_neutral=True cannot be exported: its "
                "normalisation (NFKC) is not one of single characters. Export only "
                "models whose tokenizer has language_neutral=False."
            )
        try:
            import tensorflow_text
        except ImportError as error:
            raise ImportError(
                "Exporting needs TensorFlow Text: pip install 'tensorflow-text==2.20.*'"
            ) from error
        self.run_starts, self.run_kinds, self.changed, self.images = character_tables(
            tokenizer.lowercase, tokenizer.strip_accents
        )
        self.longest_word = tokenizer.engine.model.max_input_chars_per_word
        self.longest_word_bytes = 4 * self.longest_word
        self.word_pieces = tensorflow_text.FastWordpieceTokenizer(
            tokenizer.vocabulary,
            max_bytes_per_word=self.longest_word_bytes,
            unknown_token=tokenizer.roles["unknown"],
            token_out_type=tf.int32,
            no_pretokenization=True,
        )

    def __call__(self, texts):
        """Encodes texts, without special tokens.

        Args:
            texts: UTF-8 strings `[batch]`.

        Returns:
            A ragged int32 `[batch, tokens]`.
        """
        return self.encode_with_offsets(texts)[0]

    def encode_with_offsets(self, texts):
        """Encodes texts, without special tokens, and tells where each token stands.

        Args:
            texts: UTF-8 strings `[batch]`.

        Returns:
            Three ragged `[batch, tokens]`: the ids, int32, and the bytes of its text
            where each token starts and ends, int64. Combining marks go with the
            letter before them, as in `WordPieceTokenizer.encode_with_offsets`.
        """
        characters, offsets = tf.strings.unicode_decode_with_offsets(texts, "UTF-8")
        words, sources = self.words(characters)
        # One that has more characters than a word may have, more bytes too.
        endless = tf.constant("?" * (self.longest_word_bytes + 1))
        too_long = tf.strings.length(words.values, "UTF8_CHAR") > self.longest_word
        bounded = tf.where(too_long, endless, words.values)
        # All ragged [all words, pieces].
        pieces, begins, ends = self.word_pieces.tokenize_with_offsets(bounded)
        tokens = words.with_values(pieces).merge_dims(1, 2)

        rows = tokens.value_rowids()

        # From bytes of a word to characters, counted through the batch.
        sizes = _bytes(words.values)
        word_starts = tf.cumsum(sizes, exclusive=True)[:, None]
        begins += word_starts
        ends = tf.minimum(ends, sizes[:, None]) + word_starts
        first = tf.gather(sources, begins.values)
        stop = tf.gather(sources, ends.values - 1) + 1
        stop = behind_marks(characters, rows, first, stop)

        # To bytes, through the batch and then of each text.
        sizes = _bytes(texts)
        text_starts = tf.cumsum(sizes, exclusive=True)
        places = (offsets + text_starts[:, None]).values
        places = tf.concat([places, tf.reduce_sum(sizes)[None]], axis=0)
        start, stop = (
            tokens.with_values(tf.gather(places, at) - tf.gather(text_starts, rows))
            for at in (first, stop)
        )
        return tokens, start, stop

    def words(self, characters):
        """Normalises texts and splits them at white space and punctuation.

        Args:
            characters: The texts' code points, ragged int32 `[batch, characters]`.

        Returns:
            Ragged strings `[batch, words]`; and for each byte of all words the
            character that it comes from, counted through the batch, int64 `[bytes]`.
        """
        codes = characters.values
        run = tf.searchsorted(self.run_starts, codes, side="right") - 1
        kinds = tf.gather(self.run_kinds, run)
        # What each character becomes, one or more, filled up with -1.
        nearest = tf.searchsorted(self.changed, codes)
        nearest = tf.minimum(nearest, len(self.changed) - 1)
        same = tf.pad(
            codes[:, None], [[0, 0], [0, self.images.shape[1] - 1]], constant_values=-1
        )
        changes = tf.gather(self.changed, nearest) == codes
        images = tf.where(changes[:, None], tf.gather(self.images, nearest), same)
        stays = (images >= 0) & (kinds != _REMOVED)[:, None]
        codes = tf.boolean_mask(images, stays)
        sources = tf.where(stays)[:, 0]
        kinds = tf.gather(kinds, sources)
        rows = tf.gather(characters.value_rowids(), sources)

        visible = kinds != _SPACE
        after_letter = tf.concat([[_SPACE], kinds[:-1]], axis=0) == _LETTER
        same_row = rows == tf.concat([[-1], rows[:-1]], axis=0)
        goes_on = (kinds == _LETTER) & after_letter & same_row
        begins = visible & ~goes_on
        word = tf.cumsum(tf.cast(begins, tf.int64)) - 1
        codes = tf.boolean_mask(codes, visible)
        spelled = tf.RaggedTensor.from_value_rowids(
            codes,
            tf.boolean_mask(word, visible),
            nrows=tf.math.count_nonzero(begins),
        )
        words = tf.RaggedTensor.from_value_rowids(
            tf.strings.unicode_encode(spelled, "UTF-8"),
            tf.boolean_mask(rows, begins),
            nrows=characters.nrows(),
        )
        # UTF-8 writes a character in one byte to four.
        sizes = 1 + tf.searchsorted([0x80, 0x800, 0x10000], codes, side="right")
        return words, tf.repeat(tf.boolean_mask(sources, visible), sizes)


def pack(parts, tokenizer):
    """Joins parts of sequences to `[CLS] first [SEP] second [SEP]`.

    Args:
        parts: Ragged int32 `[batch, tokens]`, one or two.
        tokenizer: The `WordPieceTokenizer`, for the special tokens' ids.

    Returns:
        The encoder's inputs, padded to the longest.
    """

    def column(token_id):
        return tf.fill([parts[0].nrows(), 1], token_id)

    joined = [column(tokenizer.classify_id)]
    for part in parts:
        joined += [part, column(tokenizer.separate_id)]
    token_ids = tf.concat(joined, axis=1)
    first = parts[0].row_lengths()[:, None] + 2
    count = token_ids.row_lengths()[:, None]
    token_ids = token_ids.to_tensor(tokenizer.padding_id)
    position = tf.range(tf.shape(token_ids, tf.int64)[1])
    return {
        "token_ids": token_ids,
        "segment_ids": tf.cast((position >= first) & (position < count), tf.int32),
        "padding_mask": tf.cast(position < count, tf.int32),
    }


@functools.cache
def character_tables(lowercase, strip_accents):
    """Asks what a `WordPieceTokenizer` makes of each character of Unicode.

    Args:
        lowercase: See `WordPieceTokenizer`.
        strip_accents: See `WordPieceTokenizer`.

    Returns:
        Four arrays, int32: where runs of code points of one kind begin, `[runs]`;
        the kind of each run, `[runs]`; the code points that become others, sorted,
        `[changed]`; and what they become, `[changed, most]`, filled up with -1.
    """
    engine = WordPieceTokenizer(SPECIAL_TOKENS, lowercase, strip_accents).engine
    # Surrogates are no characters. In the planes 4 to 13 nothing is assigned, which
    # is left as it is.
    codes = [*range(0xD800), *range(0xE000, 0x40000), *range(0xE0000, _NUM_CODES)]
    codes.remove(ord(_BARRIER))
    text = _BARRIER.join(["", *map(chr, codes), ""])
    padded = engine.normalizer.normalize_str(text).split(_BARRIER)[1:-1]
    images = [image.strip(" ") for image in padded]
    joined = _BARRIER.join(["", *images, ""])
    pieces = engine.pre_tokenizer.pre_tokenize_str(joined)
    split_off = {start for _, (start, _) in pieces}

    kinds = np.full(_NUM_CODES, _LETTER, "int32")
    # At least one; U+0000 itself is removed.
    changed, start = {0: "\0"}, len(_BARRIER)
    for code, with_spaces, image in zip(codes, padded, images, strict=True):
        if not image:
            kinds[code] = _SPACE if with_spaces else _REMOVED
        elif start in split_off or image != with_spaces:
            kinds[code] = _ALONE
        if image and image != chr(code):
            changed[code] = image
        start += len(image) + len(_BARRIER)
    runs = np.flatnonzero(np.diff(kinds, prepend=-1)).astype("int32")
    becomes = np.full((len(changed), max(map(len, changed.values()))), -1, "int32")
    for row, image in zip(becomes, changed.values(), strict=True):
        row[: len(image)] = [ord(character) for character in image]
    return runs, kinds[runs], np.array([*changed], "int32"), becomes


def behind_marks(characters, rows, first, stop):
    """Moves the end of each token behind the combining marks that follow it.

    Args:
        characters: The texts' code points, ragged int32 `[batch, characters]`.
        rows: The text of each token, int64 `[all tokens]`.
        first: Its first character, counted through the batch, int64 `[all tokens]`.
        stop: The one after its last, so too.

    Returns:
        int64 `[all tokens]`, at most where the next token or the next text begins.
    """
    count = tf.size(characters.values, tf.int64)[None]
    bound = tf.searchsorted(mark_bounds(), characters.values, side="right")
    others = tf.concat([tf.where(bound % 2 == 0)[:, 0], count], axis=0)
    behind = tf.gather(others, tf.searchsorted(others, stop))
    following = tf.concat([first[1:], count], axis=0)
    limit = tf.minimum(following, tf.gather(characters.row_limits(), rows))
    return tf.maximum(stop, tf.minimum(behind, limit))


@functools.cache
def mark_bounds():
    """Returns where runs of combining marks begin and end, code points, int32."""
    marks = [unicodedata.category(chr(code)) == "Mn" for code in range(_NUM_CODES)]
    return np.flatnonzero(np.diff(marks, prepend=False)).astype("int32")


def _bytes(strings):
    return tf.cast(tf.strings.length(strings), tf.int64)
