"""TFRecord files: records in frames, each with its length and two checksums.

A frame is the record's length (8 bytes), the length's checksum (4), the record, and the
record's checksum (4), all little-endian. A checksum is CRC-32C, rotated by 15 bits,
plus a constant.
"""

import functools
import mmap
import os
import struct
from array import array
from collections.abc import Sequence

import numpy as np

from keras_corrupt.data.info import DatasetError

HEADER_BYTES, FOOTER_BYTES = 12, 4
REMEDY = "Make or copy the file again."
DAMAGED = f"its checksum is another: it is damaged. {REMEDY}"
_POLYNOMIAL = 0x82F63B78  # Castagnoli's, its bits reversed
_ROTATED_PLUS = 0xA282EAD8
_START = 0xFFFFFFFF
# Records are checked in parts of so many bytes, at most.
_PART = 4096


def frames(records: Sequence[bytes]) -> bytes:
    """Returns records in their frames.

    Args:
        records: Any bytes.

    Returns:
        The bytes that a TFRecord file has for these records.

    Example:
    >>> frames([b"abc"]).hex()
    '0300000000000000b099490e6162636e57f121'
    """
    lengths = [struct.pack("<Q", len(record)) for record in records]
    checksums = masked_checksums([*lengths, *records]).astype("<u4")
    return b"".join(
        part
        for number, record in enumerate(records)
        for part in (
            lengths[number],
            checksums[number].tobytes(),
            record,
            checksums[len(records) + number].tobytes(),
        )
    )


def masked_checksums(records: Sequence[bytes]) -> np.ndarray:
    """Returns the checksum of each record, uint32 [records].

    CRC-32C is linear: each byte at each distance from the end adds an entry of a table.
    So NumPy computes the checksums of all records at once.

    Args:
        records: Any bytes.
    """
    states = np.full(len(records), _START, np.uint32)
    longest = max(map(len, records), default=0)
    for begin in range(0, longest, _PART):
        parts = [record[begin : begin + _PART] for record in records]
        states = _after(states, parts)
    states = ~states
    return ((states >> 15) | (states << 17)) + np.uint32(_ROTATED_PLUS)


def _after(states, parts):
    """Returns the state of each checksum after more bytes of its record."""
    lengths = np.array([len(part) for part in parts])
    content = np.frombuffer(b"".join(parts), np.uint8).copy()
    ends = np.cumsum(lengths)
    starts = ends - lengths
    for place in range(4):
        # The state is added to the next four bytes.
        more = lengths > place
        content[starts[more] + place] ^= (states[more] >> 8 * place).astype(np.uint8)
    table = _table(1 << int(lengths.max()).bit_length())
    distances = np.repeat(ends, lengths) - np.arange(1, len(content) + 1)
    added = table.take(distances << 8 | content)
    # `reduceat` cannot sum an empty part.
    nonempty = lengths > 0
    result = np.zeros_like(states)
    result[nonempty] = np.bitwise_xor.reduceat(added, starts[nonempty])
    left = np.minimum(lengths, 4)
    shifted = np.where(left < 4, states >> (8 * (left % 4)).astype(np.uint32), 0)
    return result ^ shifted.astype(np.uint32)


@functools.cache
def _table(size):
    """Returns what a byte adds to a checksum: uint32 [256 * bytes behind it + byte]."""
    row = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        row = (row >> 1) ^ (row & 1) * np.uint32(_POLYNOMIAL)
    rows = [row]
    for _ in range(size - 1):
        rows.append(row[rows[-1] & 255] ^ (rows[-1] >> 8))
    return np.concatenate(rows)


class RecordFile:
    """The records of a TFRecord file, by number; they stay in the file until asked for.

    Args:
        path: The file, not compressed.

    Raises:
        DatasetError: The file is empty, cut short or no TFRecord file.
    """

    def __init__(self, path: str | os.PathLike):
        self.path = os.fspath(path)
        size = os.path.getsize(path)
        if not size:
            raise DatasetError(f"{path}: the file is empty. {REMEDY}")
        with open(path, "rb") as file:
            self._content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        length_at = struct.Struct("<Q").unpack_from
        starts, end = array("q"), 0
        while end + HEADER_BYTES <= size:
            starts.append(end)
            end += HEADER_BYTES + length_at(self._content, end)[0] + FOOTER_BYTES
        if end != size:
            count = len(starts) + (end < size)
            kind = "is cut short" if count > 1 else "is no TFRecord file"
            raise DatasetError(
                f"{path}: {kind}: record {count} would end behind the file's {size} "
                f"bytes. {REMEDY}"
            )
        #: Where each frame begins and, last, where the file ends: int64.
        self.bounds = np.append(np.asarray(starts), size)

    def __len__(self):
        return len(self.bounds) - 1

    def frame(self, number: int) -> bytes:
        """Returns a record in its frame, not checked."""
        return self._content[self.bounds[number] : self.bounds[number + 1]]

    def beginnings(self, size: int) -> list[bytes]:
        """Returns the first bytes of each record, as many as `size`."""
        places = (self.bounds + HEADER_BYTES).tolist()
        ends = (self.bounds[1:] - FOOTER_BYTES).tolist()
        content = self._content
        return [
            content[place : min(place + size, end)]
            for place, end in zip(places, ends, strict=False)
        ]


def unframed(framed: Sequence[bytes]) -> tuple[list[bytes], np.ndarray]:
    """Takes records out of their frames.

    Args:
        framed: Frames, by `RecordFile.frame`.

    Returns:
        The records, and whether each is sound by its checksums, bool [records].
    """
    lengths = [frame[:8] for frame in framed]
    records = [frame[HEADER_BYTES:-FOOTER_BYTES] for frame in framed]
    written = b"".join(frame[8:HEADER_BYTES] for frame in framed)
    written += b"".join(frame[-FOOTER_BYTES:] for frame in framed)
    same = masked_checksums([*lengths, *records]) == np.frombuffer(written, "<u4")
    return records, same.reshape(2, -1).all(axis=0)
