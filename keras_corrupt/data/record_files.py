"""TFRecord files: listed, counted, and checked before a model trains on them."""

import functools
import glob
import os
from collections.abc import Sequence
from typing import NamedTuple

from keras_corrupt.data.features import (
    RecordFormat,
    check_features,
    features_of,
    format_of,
)
from keras_corrupt.data.info import DatasetError
from keras_corrupt.data.tfrecord import DAMAGED, RecordFile, unframed

_PROBED_RECORDS = 256


class CheckedRecords(NamedTuple):
    """Record files that `check_records` has checked.

    Attributes:
        paths: The files.
        format: Their common format.
        examples: Records of each file.
    """

    paths: list[str]
    format: RecordFormat
    examples: list[int]


def find_records(pattern: str | os.PathLike) -> list[str]:
    """Lists record files.

    Args:
        pattern: A glob, a file, or a directory, which stands for all of its files whose
            names contain `tfrecord`.

    Returns:
        The paths, sorted.

    Raises:
        DatasetError: If there are none.
    """
    pattern = os.fspath(pattern)
    if os.path.isdir(pattern):
        pattern = os.path.join(glob.escape(pattern), "*tfrecord*")
    paths = sorted(path for path in glob.glob(pattern) if os.path.isfile(path))
    if not paths:
        raise DatasetError(f"{pattern}: matches no record file.")
    return paths


def check_records(
    paths: Sequence[str],
    *,
    max_length: int | None = None,
    vocabulary_size: int | None = None,
) -> CheckedRecords:
    """Checks record files before a long run reads them.

    Every file is walked from record to record (reading the lengths only), and the first
    records of each are parsed.

    Args:
        paths: The files.
        max_length: Tokens that the model allows, if that is to be checked.
        vocabulary_size: Tokens that the model knows, if that is to be checked.

    Returns:
        The files with their format and numbers of records.

    Raises:
        DatasetError: If a file is empty, cut short, of another format than the first,
            or holds sequences or ids that the model does not allow.
    """
    counts = [count_records(path) for path in paths]
    formats = [_checked_format(p, max_length, vocabulary_size) for p in paths]
    for path, record_format in zip(paths, formats, strict=True):
        if record_format != formats[0]:
            raise DatasetError(
                f"{path}: its records are {record_format}, the records of {paths[0]} "
                f"are {formats[0]}. Read files of one kind at a time."
            )
    return CheckedRecords(list(paths), formats[0], counts)


def count_records(path: str | os.PathLike) -> int:
    """Counts the records of a TFRecord file by their headers.

    Args:
        path: The file, not compressed.

    Returns:
        The number.

    Raises:
        DatasetError: If the file is empty, cut short or no TFRecord file.
    """
    status = os.stat(path)
    return _count_records(os.fspath(path), status.st_size, status.st_mtime_ns)


@functools.cache
def _count_records(path: str, size: int, modified_ns: int) -> int:
    return len(RecordFile(path))


def _checked_format(
    path: str, max_length: int | None, vocabulary_size: int | None
) -> RecordFormat:
    """Finds the format by the first record; checks the first ones."""
    file, record_format = RecordFile(path), None
    for number in range(min(len(file), _PROBED_RECORDS)):
        (record,), (sound,) = unframed([file.frame(number)])
        try:
            if not sound:
                raise DatasetError(DAMAGED)
            features = features_of(record)
            record_format = record_format or format_of(features)
            check_features(features, record_format, max_length, vocabulary_size)
        except DatasetError as error:
            raise DatasetError(f"{path}: record {number + 1}: {error}") from error
    return record_format
