"""Scores of words, from their pieces' scores: how likely they were replaced."""

import itertools
from typing import NamedTuple

import numpy as np

from keras_corrupt.tokenizers.texts import text_list

#: Batches whose texts are sorted by length: few are padded for a long one then.
SORTED_BATCHES = 32


class WordScore(NamedTuple):
    """A word of a text, and its score.

    Attributes:
        text: The word as it is written in the text.
        start: Where it starts in the text, in characters.
        end: Where it ends.
        score: For `replaced_words`, the highest of its pieces' probabilities to have
            been replaced; for `word_scores`, the sum of their log-probabilities.
    """

    text: str
    start: int
    end: int
    score: float


def replaced_words(model, texts, batch_size=32):
    """Gives each word of each text the probability that it was replaced.

    Args:
        model: A model with `score` and a tokenizer, such as `Electra`.
        texts: A list of strings.
        batch_size: Texts in a batch. The texts of some batches are read at once, and
            long ones in windows: see `Electra.score`.

    Yields:
        For each text a list of `WordScore`. A mark of punctuation is a word.

    Raises:
        ValueError: Something is no text, or the model has no tokenizer.
    """
    if model.tokenizer is None:
        raise ValueError("Words are scored by the model's tokenizer; it has none.")
    texts = iter(text_list(texts))
    while batch := list(itertools.islice(texts, SORTED_BATCHES * batch_size)):
        encoded = list(model.tokenizer.encode_with_offsets(batch))
        scores = model.score([ids for ids, _ in encoded], batch_size)
        for text, (ids, offsets), score in zip(batch, encoded, scores, strict=True):
            pieces = score.probabilities[1:-1]  # without [CLS] and [SEP]
            begins = model.tokenizer.word_starts[ids]
            yield [
                WordScore(text[start:end], start, end, float(probability))
                for start, end, probability in joined(
                    offsets, pieces, begins, np.maximum
                )
            ]


def joined(offsets, scores, begins, join):
    """Yields where each word starts and ends, and its score.

    Args:
        offsets: int `[tokens, 2]`, where each token starts and ends.
        scores: `[tokens]`.
        begins: Booleans `[tokens]`, whether a word begins.
        join: What makes one score of its pieces' scores, a ufunc such as `np.add`.
    """
    if not len(offsets):
        return
    firsts = np.flatnonzero(np.append(True, begins[1:]))
    yield from zip(
        offsets[firsts, 0].tolist(),
        np.maximum.reduceat(offsets[:, 1], firsts).tolist(),
        join.reduceat(scores, firsts),
        strict=True,
    )
