"""Examples of record files by number, in an order that a seed decides."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_corrupt.data.features import RecordFormat
from keras_corrupt.data.info import DatasetError
from keras_corrupt.data.records import RecordError, parse
from keras_corrupt.data.tfrecord import DAMAGED, RecordFile, unframed

#: Shards whose examples are shuffled together. Where they begin is held in memory.
SHARDS_AT_ONCE = 16


class _Group(NamedTuple):
    """Shards that are read together: files, and of each example its file and place."""

    files: list[RecordFile]
    file: np.ndarray
    place: np.ndarray


class Examples:
    """The examples of some record files, epoch after epoch.

    An epoch goes through the shards in a new order, several at once, and through the
    examples of these in a new order: a shard's neighbours are alike, and so is a shard.
    Which example has which number depends on nothing but the seed and on how many each
    shard has.

    Args:
        paths: The files.
        counts: Records of each.
        record_format: Their format.
        seed: Seed of the order; `None` for the files' own.
    """

    def __init__(
        self,
        paths: Sequence[str],
        counts: Sequence[int],
        record_format: RecordFormat,
        seed: int | None = None,
    ):
        self.paths, self.format, self.seed = paths, record_format, seed
        self.counts = np.array(counts)
        self.total = int(self.counts.sum())
        # A batch may join the end of one group to the start of the next.
        self._order = functools.lru_cache(maxsize=2)(self._order)
        self._group = functools.lru_cache(maxsize=2)(self._group)

    def frames(self, numbers: np.ndarray) -> list[tuple[bytes, str, int]]:
        """Reads examples.

        Args:
            numbers: Which, int64 [examples]; those of later epochs follow.

        Returns:
            For each its frame, not checked, its file and its number there, from 1 on.

        Raises:
            DatasetError: A file is not as it was.
        """
        found = [None] * len(numbers)
        epochs, numbers = np.divmod(numbers, self.total)
        for epoch in np.unique(epochs).tolist():
            _, ends = self._order(epoch)
            groups = np.where(
                epochs == epoch, np.searchsorted(ends, numbers, "right"), -1
            )
            for index in np.unique(groups[groups >= 0]).tolist():
                group = self._group(epoch, index)
                (rows,) = np.nonzero(groups == index)
                inside = numbers[rows] - (ends[index] - len(group.place))
                places = zip(group.file[inside], group.place[inside], strict=True)
                for row, (of, place) in zip(rows, places, strict=True):
                    file = group.files[of]
                    found[row] = file.frame(place), file.path, int(place) + 1
        return found

    def _order(self, epoch):
        """Returns the shards of an epoch in order, and where each group ends."""
        shards = np.arange(len(self.paths))
        if self.seed is not None:
            shards = np.random.default_rng((self.seed, epoch)).permutation(shards)
        begins = range(0, len(shards), SHARDS_AT_ONCE)
        return shards, np.cumsum(np.add.reduceat(self.counts[shards], begins))

    def _group(self, epoch, index):
        shards, _ = self._order(epoch)
        shards = shards[SHARDS_AT_ONCE * index :][:SHARDS_AT_ONCE].tolist()
        files = [RecordFile(self.paths[shard]) for shard in shards]
        counts = self.counts[shards]
        for file, count in zip(files, counts.tolist(), strict=True):
            check_count(file.path, len(file), count)
        of = np.repeat(np.arange(len(files), dtype=np.uint8), counts)
        places = np.concatenate([np.arange(count) for count in counts])
        if self.seed is not None:
            rng = np.random.default_rng((self.seed, epoch, 1 + index))
            order = rng.permutation(len(of))
            of, places = of[order], places[order]
        return _Group(files, of, places)


def check_count(path: str, found: int, recorded: int) -> None:
    """Raises a `DatasetError` if a shard has not as many records as is recorded."""
    if found != recorded:
        raise DatasetError(
            f"{path}: holds {found} records, but dataset.json says {recorded}. Copy "
            "the directory again or prepare it again."
        )


def read(
    examples: Sequence[Examples],
    corpus: np.ndarray,
    numbers: np.ndarray,
    max_length: int,
    vocabulary_size: int,
) -> dict[str, np.ndarray]:
    """Reads a batch.

    Args:
        examples: Those of each corpus, all of one format.
        corpus: For each example of the batch the number of its corpus, int [batch].
        numbers: And its own number there, int64 [batch].
        max_length: See `parse`.
        vocabulary_size: See `parse`.

    Returns:
        What `parse` returns.

    Raises:
        DatasetError: A record is damaged or foreign; it names the file and the record.
    """
    rows = [None] * len(numbers)
    for which, stream in enumerate(examples):
        mine = np.flatnonzero(corpus == which)
        for row, found in zip(mine, stream.frames(numbers[mine]), strict=True):
            rows[row] = found
    frames, paths, places = zip(*rows, strict=True)
    records, sound = unframed(frames)
    try:
        if not sound.all():
            raise RecordError(DAMAGED, int(np.argmin(sound)))
        return parse(records, examples[0].format, max_length, vocabulary_size)
    except RecordError as error:
        place = f"{paths[error.place]}: record {places[error.place]}"
        raise DatasetError(f"{place}: {error}") from error
