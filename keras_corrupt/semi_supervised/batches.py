"""Batches of labelled and of unlabelled sentences, in turn."""

import functools

import numpy as np
import tensorflow as tf

from keras_corrupt.downstream.batches import LENGTHS, as_dataset, plan
from keras_corrupt.semi_supervised.sentences import Sentences


class SentenceBatches:
    """The batches of some sentences, pass after pass, each in an order of its own.

    Which batch is which depends on its number alone, so that a run can go on anywhere.

    Args:
        sentences: `Sentences`.
        vocabulary: The model's `WordVocabulary`.
        labels: For each sentence the indices of its words' labels, or `None`.
        batch_size: Sentences in a batch.
        seed: Of the order; `None` for that of the sentences themselves.
    """

    def __init__(self, sentences, vocabulary, labels, batch_size, seed=None):
        self.sentences = sentences
        self.labels = labels
        self.batch_size = batch_size
        self.seed = seed
        word_ids, character_ids = vocabulary.encode(sentences.forms)
        # At -1, the last row, is padding.
        self.word_ids = np.append(word_ids, 0).astype("int32")
        self.character_ids = np.pad(character_ids, [(0, 1), (0, 0)])
        longest = int(sentences.lengths.max(initial=1))
        self.buckets = [n for n in LENGTHS if n < longest] + [longest]
        # An iterator of before may still be drawing, for another pass, in its thread.
        self.plan_of = functools.lru_cache(maxsize=2)(self._plan_of)

    def __len__(self):
        """Batches in a pass."""
        return -(-len(self.sentences) // self.batch_size)

    def rows(self, number):
        """Returns the sentences of a batch, counted from 0 on, and their length."""
        pass_number, index = divmod(number, len(self))
        return self.plan_of(pass_number)[index]

    def _plan_of(self, pass_number):
        rng = None
        if self.seed is not None:
            rng = np.random.default_rng((self.seed, pass_number))
        return plan(self.sentences.lengths, self.batch_size, self.buckets, rng)

    def batch(self, number):
        """Returns the inputs and targets of a batch.

        A batch with fewer sentences is filled up with empty ones.

        Returns:
            `(inputs, tags)`: see `CrossViewTagger`.
        """
        rows, length = self.rows(number)
        forms = np.full((self.batch_size, length), -1, "int32")
        forms[: len(rows)] = self.sentences.padded(rows, length)
        tags = np.full((self.batch_size, length), -1, "int32")
        if self.labels is not None:
            for row, i in zip(tags, rows, strict=False):
                row[: len(self.labels[i])] = self.labels[i]
        inputs = {
            "word_ids": self.word_ids[forms],
            "character_ids": self.character_ids[forms],
            "padding_mask": (forms >= 0).astype("int32"),
            "labelled": np.full(self.batch_size, self.labels is not None, "int32"),
        }
        return inputs, tags


def alternating(kinds, step=0, count=tf.data.INFINITE_CARDINALITY):
    """Returns batches of each kind in turn, from update `step` on.

    Args:
        kinds: A list of `SentenceBatches`.
        step: Batches that were drawn before.
        count: How many to return; without end if not given.

    Returns:
        A `tf.data.Dataset` of `(inputs, tags)`.
    """

    def batches():
        number = step
        while True:
            turn, kind = divmod(number, len(kinds))
            yield kinds[kind].batch(turn)
            number += 1

    return as_dataset(batches, kinds[0].batch(0), count)


def in_order(sentences, vocabulary, labels=None, batch_size=64):
    """Yields `(rows, inputs, tags)` of all sentences, lists of words, once."""
    batches = SentenceBatches(Sentences(sentences), vocabulary, labels, batch_size)
    for number in range(len(batches)):
        yield batches.rows(number)[0], *batches.batch(number)
