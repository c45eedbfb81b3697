"""Batches of labelled and of unlabelled sentences, in turn."""

import functools

import numpy as np

from keras_corrupt.devices.batches import Batches
from keras_corrupt.downstream.batches import LENGTHS, assemble, plan


class SentenceBatches:
    """The batches of some sentences, pass after pass, each in an order of its own.

    Which batch is which depends on its number alone, so that a run can go on anywhere.
    A subclass says what of a sentence a model reads.

    Args:
        sentences: `Sentences`.
        lengths: What each sentence takes of a batch's length, int `[sentences]`.
        labels: For each word of all sentences the index of its label, or `None`.
        batch_size: Sentences in a batch.
        seed: Seed of the order; `None` keeps the order of the sentences.
    """

    def __init__(self, sentences, lengths, labels, batch_size, seed):
        self.sentences = sentences
        self.lengths = lengths
        self.labels = labels
        self.batch_size = batch_size
        self.seed = seed
        longest = int(lengths.max(initial=1))
        self.buckets = [n for n in LENGTHS if n < longest] + [longest]
        # An iterator of before may still be drawing, for another pass, in its thread.
        self.plan_of = functools.lru_cache(maxsize=2)(self._plan_of)

    def __len__(self):
        """Batches in a pass."""
        return -(-len(self.sentences) // self.batch_size)

    def rows(self, number):
        """Returns the sentences of a batch, counted from 0 on."""
        return self.planned(number)[0]

    def planned(self, number):
        """Returns the sentences of a batch, and the length that they are padded to."""
        pass_number, index = divmod(number, len(self))
        return self.plan_of(pass_number)[index]

    def _plan_of(self, pass_number):
        rng = None
        if self.seed is not None:
            rng = np.random.default_rng((self.seed, pass_number))
        return plan(self.lengths, self.batch_size, self.buckets, rng)

    def tags(self, row):
        """Returns the indices of a sentence's tags, -1 where they are not known."""
        words = slice(*self.sentences.starts[row : row + 2])
        if self.labels is None:
            return np.full(words.stop - words.start, -1)
        return self.labels[words]

    def batch(self, number):
        """Returns the inputs and targets of a batch.

        A batch with fewer sentences is filled up with empty ones.

        Returns:
            `(inputs, tags)`: see `CrossViewModel`.
        """
        inputs, tags = self.assembled(*self.planned(number))
        labelled = np.full(self.batch_size, self.labels is not None, "int32")
        return {**inputs, "labelled": labelled}, tags


class WordBatches(SentenceBatches):
    """Batches of whole words and of their letters, which `BiLSTMEncoder` reads.

    Args are `SentenceBatches`'s, and the model's `WordVocabulary`.
    """

    def __init__(self, sentences, vocabulary, labels, batch_size, seed=None):
        super().__init__(sentences, sentences.lengths, labels, batch_size, seed)
        word_ids, character_ids = vocabulary.encode(sentences.forms)
        # At -1, the last row, is padding.
        self.word_ids = np.append(word_ids, 0).astype("int32")
        self.character_ids = np.pad(character_ids, [(0, 1), (0, 0)])

    def assembled(self, rows, length):
        """Returns inputs and tags of some sentences."""
        tags = np.full((self.batch_size, length), -1, "int32")
        for row, i in zip(tags, rows, strict=False):
            tags_of_row = self.tags(i)
            row[: len(tags_of_row)] = tags_of_row
        return self.words(rows, length), tags

    def words(self, rows, length):
        """Returns the inputs that are some sentences' words."""
        forms = np.full((self.batch_size, length), -1, "int32")
        forms[: len(rows)] = self.sentences.padded(rows, length)
        return {
            "word_ids": self.word_ids[forms],
            "character_ids": self.character_ids[forms],
            "padding_mask": (forms >= 0).astype("int32"),
        }


class PieceBatches(SentenceBatches):
    """Batches of word pieces, which a `TokenTagger` reads.

    A sentence that is longer than the tagger reads is cut between words.

    Args are `SentenceBatches`'s, and the `TokenTagger`.
    """

    def __init__(self, sentences, tagger, labels, batch_size, seed=None):
        self.tagger = tagger
        self.pieces = tagger.pieces_of(sentences.forms)
        sizes = np.array([len(ids) for ids in self.pieces], "int64")
        sentences = sentences.cut(sizes, tagger.room)
        ends = np.concatenate([[0], np.cumsum(sizes[sentences.ids])])
        lengths = np.diff(ends[sentences.starts]) + 2  # [CLS] and [SEP]
        super().__init__(sentences, lengths, labels, batch_size, seed)

    def assembled(self, rows, length):
        """Returns inputs and tags of some sentences; tags stand at first pieces."""
        features = [
            self.feature([self.pieces[i] for i in self.sentences.of(row)], row)
            for row in rows
        ]
        features += [self.feature([])] * (self.batch_size - len(rows))
        padding_id = self.tagger.tokenizer.padding_id
        every = np.arange(self.batch_size)
        inputs, targets, *_ = assemble(
            features, every, self.batch_size, length, padding_id
        )
        return inputs, targets["tag"]

    def feature(self, words, row=None):
        """Returns the `Feature` of words in pieces, with each word's successor."""
        tags = [] if row is None else self.tags(row)
        feature = self.tagger.feature(words, tags, row)
        (starts,) = np.nonzero(feature.inputs["word_starts"])
        following = np.zeros(len(feature.inputs["token_ids"]), "int32")
        following[starts] = np.append(starts, len(following) - 1)[1:]
        feature.inputs["next_starts"] = following
        return feature


def alternating(kinds, step=0, count=None, first=0):
    """Returns batches of each kind in turn, from update `step` on.

    Args:
        kinds: A list of `SentenceBatches`.
        step: Batches that were drawn before.
        count: How many to return; without end if not given.
        first: Batches of the first kind before the others have their turn.

    Returns:
        `Batches` of `(inputs, tags)`.
    """

    def batch(number):
        number += step
        turn, kind = divmod(max(number - first, 0), len(kinds))
        if kind == 0:
            turn += min(number, first)
        return kinds[kind].batch(turn)

    return Batches(batch, count, varying=(1,))
