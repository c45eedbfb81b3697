"""Sentences in compact form, and how plain text becomes sentences."""

import copy
import re
from array import array
from collections import Counter

import numpy as np

from keras_corrupt.cross_view.tasks.words import split_words
from keras_corrupt.data.corpus import CorpusError
from keras_corrupt.downstream.token_tagger import windows

# Where a sentence ends: a stop, what closes with it, space, and no small letter next.
_END = re.compile(r"(?:(?<=[.!?])|(?<=[.!?][\"'”’)\]]))\s+(?=[^\sa-z])")


def split_text(text):
    """Divides text into sentences, and those into words.

    >>> split_text("It can't be. Not 1,000.5 near-misses!")
    [['It', 'ca', "n't", 'be', '.'], ['Not', '1,000.5', 'near-misses', '!']]
    """
    return [split_words(sentence) for sentence in _END.split(text)]


#: Words of a sentence that `split_text` has divided from others.
_FEWEST, _MOST = 4, 100


def unlabelled_sentences(corpus, in_words=False, omissions=None):
    """Streams the sentences of a corpus.

    Headings and other lines that end without a stop are passed over, so a line holds
    whole sentences, such as a paragraph. So are sentences of fewer than 4 or more than
    100 words: most are faults of the division. With `in_words` only long ones are.

    Args:
        corpus: What `open_corpus` returns.
        in_words: Whether each line is a sentence, its words separated by spaces, as in
            the One Billion Word Benchmark. Otherwise `split_text` divides it.
        omissions: `None`, or an `Omissions` that counts the lines and sentences which
            are passed over.

    Yields:
        A list of words.

    Raises:
        CorpusError: A source cannot be read, or the corpus has no sentence.
    """
    any_sentence = False
    fewest = 1 if in_words else _FEWEST
    other_lengths = f"sentences that have not {fewest} to {_MOST} words"
    for source in corpus:
        for _, line in source.lines():
            if not in_words and line.rstrip(" \t\"'”’)]")[-1:] not in (".", "!", "?"):
                if omissions is not None:
                    omissions.add("lines that end without a stop", line[:40])
                continue
            for words in [line.split()] if in_words else split_text(line):
                if fewest <= len(words) <= _MOST:
                    any_sentence = True
                    yield words
                elif omissions is not None:
                    omissions.add(other_lengths, " ".join(words)[:40])
    if not any_sentence:
        names = ", ".join(source.name for source in corpus)
        raise CorpusError(
            f"{names}: there is no sentence of {fewest} to {_MOST} words of plain text."
        )


class Sentences:
    """Sentences as integers: four bytes a word, and each written form once.

    Args:
        sentences: An iterable of lists of words.

    Attributes:
        forms: The different words.
        ids: int32 `[words of all sentences]`, indices into `forms`.
        starts: int64 `[sentences + 1]`: where each begins, and where the last ends.
        omissions: A note of text that was not read, for a banner.
    """

    omissions = ""

    def __init__(self, sentences):
        index, ids, lengths = {}, array("i"), []
        for words in sentences:
            ids.extend(index.setdefault(word, len(index)) for word in words)
            lengths.append(len(words))
        self.forms = list(index)
        self.ids = np.array(ids, "int32")
        self.starts = np.concatenate([[0], np.cumsum(lengths, dtype="int64")])

    def __len__(self):
        return len(self.starts) - 1

    @property
    def lengths(self):
        """Words of each sentence, `[sentences]`."""
        return np.diff(self.starts)

    def counts(self):
        """Returns form -> how often it occurs."""
        counts = np.bincount(self.ids, minlength=len(self.forms)).tolist()
        return Counter(dict(zip(self.forms, counts, strict=True)))

    def of(self, row):
        """Returns the ids of a sentence's words, int32 `[words]`."""
        return self.ids[self.starts[row] : self.starts[row + 1]]

    def cut(self, sizes, room):
        """Returns the same words in sentences that hold no more than fits.

        Args:
            sizes: The size of each form, int `[forms]`, none larger than `room`.
            room: The largest sum of sizes in a sentence. One that is larger becomes
                several, cut between words.

        >>> sentences = Sentences([["a", "b", "c"], [], ["a"]])
        >>> sentences.cut(np.array([2, 1, 2]), room=3).starts.tolist()
        [0, 2, 3, 3, 4]
        """
        ends = np.concatenate([[0], np.cumsum(sizes[self.ids])])
        divided = copy.copy(self)
        further = [
            self.starts[row] + start
            for row in np.flatnonzero(np.diff(ends[self.starts]) > room)
            for start, _ in windows(sizes[self.of(row)], room)[1:]
        ]
        starts = np.concatenate([self.starts, np.array(further, "int64")])
        divided.starts = np.sort(starts)
        return divided

    def padded(self, rows, length):
        """Returns the ids of some sentences, int32 `[rows, length]`, padded with -1."""
        padded = np.full((len(rows), length), -1, "int32")
        for row, i in zip(padded, rows, strict=True):
            words = self.of(i)
            row[: len(words)] = words
        return padded
