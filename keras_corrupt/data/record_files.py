"""TFRecord files: which there are, and whether what they hold can be trained on."""

import functools
import glob
import mmap
import os
import struct
from collections.abc import Sequence
from typing import NamedTuple

from keras_corrupt.data.info import DatasetError
from keras_corrupt.data.records import (
    EXAMPLES,
    MASKED,
    MODEL_GARDEN,
    TYPE_IDS,
    WORD_IDS,
    RecordFormat,
)

# A record's frame: its length and two checksums.
_HEADER_BYTES, _FOOTER_BYTES = 12, 4
_PROBED_RECORDS = 256
_REMEDY = "Make or copy the file again."


class CheckedRecords(NamedTuple):
    """What `check_records` found.

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
        pattern: A glob, a file, or a directory, of which all files whose names contain
            `tfrecord` are taken.

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
    every: bool = False,
) -> CheckedRecords:
    """Checks record files before a long run reads them.

    Every file is walked from record to record (reading the lengths only), and the first
    records of each are parsed.

    Args:
        paths: The files.
        max_length: Tokens that the model allows, if that is to be checked.
        vocabulary_size: Tokens that the model knows, if that is to be checked.
        every: Whether to parse all records, not the first of each file only.

    Returns:
        The files with their format and numbers of records.

    Raises:
        DatasetError: If a file is empty, cut short, of another format than the first,
            or holds sequences or ids that the model does not allow.
    """
    counts = [count_records(path) for path in paths]
    limit = -1 if every else _PROBED_RECORDS
    formats = [_checked_format(p, max_length, vocabulary_size, limit) for p in paths]
    for path, record_format in zip(paths, formats, strict=True):
        if record_format != formats[0]:
            raise DatasetError(
                f"{path}: its records are {record_format}, those of {paths[0]} are "
                f"{formats[0]}. Read files of one kind at a time."
            )
    return CheckedRecords(list(paths), formats[0], counts)


def count_records(path: str | os.PathLike) -> int:
    """Counts the records of a TFRecord file by their headers.

    A length that reaches behind the file's end would end the process that reads it.

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
    if not size:
        raise DatasetError(f"{path}: the file is empty. {_REMEDY}")
    read_length = struct.Struct("<Q").unpack_from
    offset = count = 0
    with (
        open(path, "rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        while offset + _HEADER_BYTES <= size:
            (length,) = read_length(content, offset)
            offset += _HEADER_BYTES + length + _FOOTER_BYTES
            count += 1
    if offset != size:
        count += offset < size
        kind = "is cut short" if count > 1 else "is no TFRecord file"
        raise DatasetError(
            f"{path}: {kind}: record {count} would end behind the file's {size} bytes. "
            f"{_REMEDY}"
        )
    return count


def _checked_format(
    path: str, max_length: int | None, vocabulary_size: int | None, limit: int
) -> RecordFormat:
    """Finds the format by the first record; checks the first `limit`, -1 for all."""
    import tensorflow as tf

    found, number = None, 0
    try:
        records = tf.data.TFRecordDataset(path).take(limit).as_numpy_iterator()
        for record in records:
            number += 1
            features = tf.train.Example.FromString(record).features.feature
            found = found or _format_of(features)
            _check_record(features, found, max_length, vocabulary_size)
    except DatasetError as error:
        raise DatasetError(f"{path}: record {number}: {error}") from error
    except (tf.errors.OpError, ValueError) as error:
        raise DatasetError(
            f"{path}: record {number + 1} does not parse: it is damaged. {_REMEDY}"
        ) from error
    except Exception as error:
        # The protocol buffer library's DecodeError derives from Exception only, and
        # the library is no direct dependency.
        if type(error).__name__ != "DecodeError":
            raise
        raise DatasetError(
            f"{path}: record {number} is no tf.train.Example. {_REMEDY}"
        ) from error
    return found


def _check_record(
    features,
    record_format: RecordFormat,
    max_length: int | None,
    vocabulary_size: int | None,
) -> None:
    if _format_of(features) != record_format:
        raise DatasetError(
            f"holds the features {sorted(features)} in other numbers than the records "
            f"before it. {_REMEDY}"
        )
    ids, segment_ids = (
        features[name].int64_list.value
        for name in (record_format.word_ids, record_format.type_ids)
    )
    if not ids or len(ids) != len(segment_ids):
        raise DatasetError(
            f"{len(ids)} token ids and {len(segment_ids)} segment ids. {_REMEDY}"
        )
    if max_length and len(ids) > max_length:
        raise DatasetError(
            f"{len(ids)} tokens, more than max_length={max_length}. Pass "
            f"max_length={len(ids)}, or prepare the data for the shorter length."
        )
    ids = [*ids, *features["masked_lm_ids"].int64_list.value]
    if not 0 <= min(ids) <= max(ids) < (vocabulary_size or 1 << 31):
        raise DatasetError(
            f"token ids from {min(ids)} to {max(ids)}, outside the model's "
            f"vocabulary_size={vocabulary_size}. Use the vocabulary that the records "
            "were made with."
        )
    if record_format.name == EXAMPLES and not {*segment_ids} <= {0, 1}:
        raise DatasetError(f"segment ids that are neither 0 nor 1. {_REMEDY}")


def _format_of(features) -> RecordFormat:
    names = sorted(features)
    if "token_ids" in names and "segment_ids" in names:
        return RecordFormat(EXAMPLES)
    word_ids = next((name for name in WORD_IDS if name in names), None)
    type_ids = next((name for name in TYPE_IDS if name in names), None)
    masked = [name for name in MASKED if name in names]
    complete = len(masked) in (0, len(MASKED))
    if not (word_ids and type_ids and "input_mask" in names and complete):
        raise DatasetError(
            f"holds the features {names}, which are neither token_ids and segment_ids "
            "nor those of Model Garden's BERT pretraining data "
            f"({', '.join((WORD_IDS[0], 'input_mask', TYPE_IDS[0], *MASKED))})."
        )
    return RecordFormat(
        MODEL_GARDEN,
        word_ids,
        type_ids,
        len(features[word_ids].int64_list.value),
        len(features[masked[0]].int64_list.value) if masked else 0,
    )
