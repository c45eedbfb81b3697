"""`WordPieceTokenizer` as TensorFlow operations, for models that leave Python."""

import functools

import numpy as np
import tensorflow as tf

from keras_corrupt.data.tokenizer import SPECIAL_TOKENS, WordPieceTokenizer

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
        ValueError: The tokenizer is language-neutral.
        ImportError: TensorFlow Text is not installed.
    """

    def __init__(self, tokenizer):
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
                "Exporting needs TensorFlow Text: pip install -e '.[export]'"
            ) from error
        self.run_starts, self.run_kinds, self.changed, self.images = character_tables(
            tokenizer.lowercase, tokenizer.strip_accents
        )
        self.longest_word = tokenizer._engine.model.max_input_chars_per_word
        self.longest_word_bytes = 4 * self.longest_word
        self.word_pieces = tensorflow_text.FastWordpieceTokenizer(
            tokenizer.vocabulary,
            max_bytes_per_word=self.longest_word_bytes,
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
        words = self.words(texts)
        # One that has more characters than a word may have, more bytes too.
        endless = tf.constant("?" * (self.longest_word_bytes + 1))
        too_long = tf.strings.length(words.values, "UTF8_CHAR") > self.longest_word
        known = tf.where(too_long, endless, words.values)
        pieces = self.word_pieces.tokenize(known)  # ragged [all words, pieces]
        return words.with_values(pieces).merge_dims(1, 2)

    def words(self, texts):
        """Normalises texts and splits them at white space and punctuation.

        Args:
            texts: UTF-8 strings `[batch]`.

        Returns:
            Ragged strings `[batch, words]`.
        """
        decoded = tf.strings.unicode_decode(texts, "UTF-8")
        codes, rows = decoded.values, decoded.value_rowids()
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
        kinds = tf.repeat(kinds, tf.reduce_sum(tf.cast(stays, tf.int32), axis=1))
        rows = tf.repeat(rows, tf.reduce_sum(tf.cast(stays, tf.int32), axis=1))

        visible = kinds != _SPACE
        after_letter = tf.concat([[_SPACE], kinds[:-1]], axis=0) == _LETTER
        same_row = rows == tf.concat([[-1], rows[:-1]], axis=0)
        goes_on = (kinds == _LETTER) & after_letter & same_row
        begins = visible & ~goes_on
        word = tf.cumsum(tf.cast(begins, tf.int64)) - 1
        characters = tf.RaggedTensor.from_value_rowids(
            tf.boolean_mask(codes, visible),
            tf.boolean_mask(word, visible),
            nrows=tf.math.count_nonzero(begins),
        )
        return tf.RaggedTensor.from_value_rowids(
            tf.strings.unicode_encode(characters, "UTF-8"),
            tf.boolean_mask(rows, begins),
            nrows=decoded.nrows(),
        )


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
    engine = WordPieceTokenizer(SPECIAL_TOKENS, lowercase, strip_accents)._engine
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
