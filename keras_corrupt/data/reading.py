"""Examples of record files by number, in an order that a seed decides."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_corrupt.data.features import EXAMPLES, RecordFormat
from keras_corrupt.data.info import DatasetError
from keras_corrupt.data.int_lists import BEGINNING, list_lengths
from keras_corrupt.data.records import RecordError, parse
from keras_corrupt.data.rows import filled_rows, row_bounds
from keras_corrupt.data.tfrecord import DAMAGED, RecordFile, unframed

#: Shards whose examples are shuffled together. Where they begin is held in memory.
SHARDS_AT_ONCE = 16


class _Group(NamedTuple):
    """Shards that are read together: files, and the file and place of each row.

    `bounds` tells, for each file, the number of each row's first example.
    """

    files: list[RecordFile]
    bounds: list[np.ndarray]
    file_numbers: np.ndarray
    places: np.ndarray


class Examples:
    """The examples of some record files, epoch after epoch, one a row or several.

    An epoch goes through the shards in a new order, several at once, and through the
    examples of these shards in a new order, because the examples of a shard, and of
    neighbouring shards, are alike. The seed and the shards' sizes alone decide the
    number of each example.

    Args:
        paths: The files.
        counts: The number of records in each file.
        record_format: The format of the records.
        seed: Seed of the order; `None` for the order of the files.
        bounds: For each file what `rows_of` returned, where a row holds several
            examples. Rows then have numbers and an order, in place of examples.
    """

    def __init__(
        self,
        paths: Sequence[str],
        counts: Sequence[int],
        record_format: RecordFormat,
        seed: int | None = None,
        bounds: Sequence[np.ndarray] | None = None,
    ):
        self.paths, self.format, self.seed = paths, record_format, seed
        self.bounds = bounds
        self.counts = np.array([len(b) - 1 for b in bounds] if bounds else counts)
        self.total = int(self.counts.sum())
        # A batch may join the end of one group to the start of the next.
        self.order_of = functools.lru_cache(maxsize=2)(self._order_of)
        self.group_of = functools.lru_cache(maxsize=2)(self._group_of)

    def frames(self, numbers: np.ndarray) -> list[list[tuple[bytes, str, int]]]:
        """Reads rows.

        Args:
            numbers: The numbers of the rows, int64 [rows]; the rows of the second epoch
                follow the rows of the first, and so on.

        Returns:
            For each row its examples: for each its frame, not checked, its file and its
            number in the file, from 1 on.

        Raises:
            DatasetError: A file has changed.
        """
        frames = [None] * len(numbers)
        epochs, numbers = np.divmod(numbers, self.total)
        for epoch in np.unique(epochs).tolist():
            _, ends = self.order_of(epoch)
            groups = np.where(
                epochs == epoch, np.searchsorted(ends, numbers, "right"), -1
            )
            for index in np.unique(groups[groups >= 0]).tolist():
                group = self.group_of(epoch, index)
                (rows,) = np.nonzero(groups == index)
                inside = numbers[rows] - (ends[index] - len(group.places))
                places = zip(
                    group.file_numbers[inside], group.places[inside], strict=True
                )
                for row, (file_number, place) in zip(rows, places, strict=True):
                    file, bounds = group.files[file_number], group.bounds[file_number]
                    frames[row] = [
                        (file.frame(number), file.path, number + 1)
                        for number in range(bounds[place], bounds[place + 1])
                    ]
        return frames

    def _order_of(self, epoch):
        """Returns the shards of an epoch in order, and where each group ends."""
        shards = np.arange(len(self.paths))
        if self.seed is not None:
            shards = np.random.default_rng((self.seed, epoch)).permutation(shards)
        begins = range(0, len(shards), SHARDS_AT_ONCE)
        return shards, np.cumsum(np.add.reduceat(self.counts[shards], begins))

    def _group_of(self, epoch, index):
        shards, _ = self.order_of(epoch)
        shards = shards[SHARDS_AT_ONCE * index :][:SHARDS_AT_ONCE].tolist()
        files = [RecordFile(self.paths[shard]) for shard in shards]
        counts = self.counts[shards]
        if self.bounds:
            bounds = [self.bounds[shard] for shard in shards]
        else:
            bounds = [np.arange(count + 1) for count in counts]
        for file, (*_, count) in zip(files, bounds, strict=True):
            check_count(file.path, len(file), count)
        file_numbers = np.repeat(np.arange(len(files), dtype=np.uint8), counts)
        places = np.concatenate([np.arange(count) for count in counts])
        if self.seed is not None:
            rng = np.random.default_rng((self.seed, epoch, 1 + index))
            order = rng.permutation(len(places))
            file_numbers, places = file_numbers[order], places[order]
        return _Group(files, bounds, file_numbers, places)


def check_count(path: str, count: int, recorded: int) -> None:
    """Raises a `DatasetError` if a shard has more or fewer records than recorded."""
    if count != recorded:
        raise DatasetError(
            f"{path}: holds {count} records, but dataset.json says {recorded}. Copy "
            "the directory again or prepare it again."
        )


def rows_of(path: str, row_length: int, vocabulary_size: int) -> np.ndarray:
    """Divides the examples of a file into rows.

    Args:
        path: The file, one of `prepare_dataset`.
        row_length: Tokens of a row.
        vocabulary_size: All token ids are below.

    Returns:
        See `row_bounds`.

    Raises:
        DatasetError: A record is damaged, foreign or longer than a row.
    """
    file = RecordFile(path)
    lengths, sound = list_lengths(file.beginnings(BEGINNING))
    # These records are wrong, or have a layout that only other writers use.
    (odd,) = np.nonzero(~sound | (lengths < 1) | (lengths > row_length))
    if len(odd):
        examples = [Examples([path], [len(file)], RecordFormat(EXAMPLES))]
        arrays = read(examples, 0 * odd, odd, row_length, vocabulary_size)
        lengths[odd] = arrays["padding_mask"].sum(axis=1)
    return row_bounds(lengths, row_length)


def read(
    examples: Sequence[Examples],
    corpus: np.ndarray,
    numbers: np.ndarray,
    max_length: int,
    vocabulary_size: int,
) -> dict[str, np.ndarray]:
    """Reads a batch.

    Args:
        examples: The examples of each corpus, all of one format.
        corpus: The number of the corpus of each row of the batch, int [batch].
        numbers: The number of each row in its corpus, int64 [batch].
        max_length: See `parse`.
        vocabulary_size: See `parse`.

    Returns:
        The arrays that `parse` returns; where rows hold several examples, the arrays
        that `filled_rows` returns.

    Raises:
        DatasetError: A record is damaged or foreign; it names the file and the record.
    """
    rows = [None] * len(numbers)
    for corpus_number, stream in enumerate(examples):
        places = np.flatnonzero(corpus == corpus_number)
        frames = stream.frames(numbers[places])
        for place, frame in zip(places, frames, strict=True):
            rows[place] = frame
    frames, paths, places = zip(*(each for row in rows for each in row), strict=True)
    records, sound = unframed(frames)
    try:
        if not sound.all():
            raise RecordError(DAMAGED, int(np.argmin(sound)))
        arrays = parse(records, examples[0].format, max_length, vocabulary_size)
    except RecordError as error:
        place = f"{paths[error.place]}: record {places[error.place]}"
        raise DatasetError(f"{place}: {error}") from error
    return filled_rows(arrays, list(map(len, rows))) if examples[0].bounds else arrays
