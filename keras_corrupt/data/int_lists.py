"""The two int64 lists of many records at once, in NumPy.

Records that `serialize` wrote have one layout: tags and sizes, then the segment ids, a
byte each; tags and sizes, then the token ids, seven bits a byte. So NumPy reads all
records of a batch together, each from a position of its own.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# Bytes of the largest number that is read, which is below 2^35.
_WIDEST = 5

#: Bytes from which `list_lengths` reads.
BEGINNING = 64


class IntLists(NamedTuple):
    """The two lists of each of some records.

    Attributes:
        lengths: Numbers in each list, int64 [records]; 0 where a record is not sound.
        token_ids: The token ids of all records, joined: int64 [numbers].
        segment_ids: The segment ids of all records, joined: int64 [numbers].
        sound: Which records have the layout, and two lists of one length: bool
            [records].
    """

    lengths: np.ndarray
    token_ids: np.ndarray
    segment_ids: np.ndarray
    sound: np.ndarray


def int_lists(records: Sequence[bytes]) -> IntLists:
    """Reads the lists.

    Args:
        records: Serialised examples; records of another layout are only marked.

    Example:
    >>> from keras_corrupt.data.examples import Example
    >>> from keras_corrupt.data.records import serialize
    >>> int_lists([serialize(Example([2, 300, 3], [0, 0, 0])), b"x"]).token_ids
    array([  2, 300,   3])
    """
    walk = _Walk(records)
    walk.size(b"\x0a")
    segments, tokens = walk.values(b"segment_ids"), walk.values(b"token_ids")
    sound = walk.sound & (walk.places == walk.ends)
    # A number that lacks its last bytes would take them from the next record.
    last = walk.content[np.where(sound, tokens.stop - 1, 0)]
    sound &= (tokens.stop > tokens.start) & (last < 128)
    numbers = walk.bytes_of(tokens, sound)
    (ends,) = np.nonzero(numbers < 128)
    widths = np.diff(ends, prepend=-1)
    sizes = (tokens.stop - tokens.start) * sound
    lengths = np.diff(np.searchsorted(ends, np.cumsum(sizes)), prepend=0)
    same = sound & (lengths == segments.stop - segments.start)
    same[np.repeat(np.arange(len(records)), lengths)[widths > _WIDEST]] = False
    if not (same == sound).all():
        kept = np.repeat(same, lengths)
        ends, widths = ends[kept], widths[kept]
    token_ids = numbers[ends].astype(np.int64)
    (wider,) = np.nonzero(widths > 1)
    place = 1
    while len(wider):
        # The byte before has seven lower bits.
        token_ids[wider] <<= 7
        token_ids[wider] |= numbers[ends[wider] - place] & 127
        place += 1
        wider = wider[widths[wider] > place]
    segment_ids = walk.bytes_of(segments, same).astype(np.int64)
    return IntLists(lengths * same, token_ids, segment_ids, same)


def list_lengths(beginnings: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Reads how many numbers each of a record's two lists has.

    Args:
        beginnings: The first `BEGINNING` bytes of serialised examples.

    Returns:
        The lengths, int64 [records], and which records have the layout, bool [records].

    Example:
    >>> from keras_corrupt.data.examples import Example
    >>> from keras_corrupt.data.records import serialize
    >>> list_lengths([serialize(Example([2, 300, 3], [0, 0, 0]))[:BEGINNING]])
    (array([3]), array([ True]))
    """
    walk = _Walk(beginnings)
    walk.size(b"\x0a")
    return walk.values_size(b"segment_ids"), walk.sound


class _Span(NamedTuple):
    start: np.ndarray
    stop: np.ndarray


class _Walk:
    """Goes through all records at once."""

    def __init__(self, records):
        lengths = np.array([len(record) for record in records])
        joined = np.frombuffer(b"".join(records), np.uint8)
        self.content = np.append(joined, np.zeros(64, np.uint8))
        self.ends = np.cumsum(lengths)
        self.places = self.ends - lengths
        self.sound = np.ones(len(records), bool)

    def size(self, before):
        """Passes the bytes that must precede a number, and returns the number."""
        expected = np.frombuffer(before, np.uint8)
        self.places = np.minimum(self.places, len(self.content) - 64)
        actual = self.content[self.places[:, None] + np.arange(len(expected))]
        self.sound &= (actual == expected).all(axis=1)
        self.places = self.places + len(expected)
        value, more = np.zeros_like(self.places), np.ones_like(self.sound)
        for place in range(_WIDEST):
            byte = self.content[self.places]
            value += np.where(more, byte & 127, 0).astype(np.int64) << 7 * place
            self.places = self.places + more
            more = more & (byte > 127)
            if not more.any():
                break
        self.sound &= ~more
        return value

    def values_size(self, name):
        """Passes a feature up to its values; returns the number of their bytes."""
        self.size(b"\x0a")
        self.size(b"\x0a%c%s\x12" % (len(name), name))
        self.size(b"\x1a")
        return self.size(b"\x0a")

    def values(self, name):
        """Passes a feature; returns where its values are."""
        length = self.values_size(name)
        start, self.places = self.places, self.places + length
        self.sound &= self.places <= self.ends
        return _Span(start, self.places)

    def bytes_of(self, span, sound):
        """Returns the bytes of the sound records' spans, one after the other."""
        places = zip(span.start[sound].tolist(), span.stop[sound].tolist(), strict=True)
        content = memoryview(self.content)
        return np.frombuffer(b"".join(content[a:b] for a, b in places), np.uint8)
