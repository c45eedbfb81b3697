"""TFRecord files: examples as `tf.train.Example`, written and parsed.

Two formats are read: the project's own (`token_ids`, `segment_ids`) and the BERT
pretraining records of TensorFlow Model Garden, whose masks are undone. TensorFlow is
imported where it is used, for processes that only serialise need not load it.
"""

import glob
import os
import struct
from collections.abc import Sequence
from typing import NamedTuple

from keras_corrupt.data.examples import Example
from keras_corrupt.data.info import DatasetError

EXAMPLES = "examples"
MODEL_GARDEN = "model_garden"
# Model Garden's tools have used two names for the same feature.
_WORD_IDS = ("input_word_ids", "input_ids")
_TYPE_IDS = ("input_type_ids", "segment_ids")
_MASKED = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
_HEADER_BYTES, _FOOTER_BYTES = 12, 4
_PROBED_RECORDS = 256


class RecordFormat(NamedTuple):
    """How to parse the records of a set of files.

    Attributes:
        name: `"examples"` or `"model_garden"`.
        word_ids: Name of the feature that holds the token ids.
        type_ids: Name of the feature that holds the segment ids.
        length: Tokens of every record, or 0 where lengths differ.
        masked: Masked positions of every record, or 0 without static masking.
    """

    name: str
    word_ids: str = "token_ids"
    type_ids: str = "segment_ids"
    length: int = 0
    masked: int = 0


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


def serialize(example: Example) -> bytes:
    """Encodes an example as the bytes of a `tf.train.Example`.

    The protocol buffer has two int64 lists, `token_ids` and `segment_ids`. It is
    written directly: the worker processes that do this start in a tenth of a second and
    need no TensorFlow in memory.

    Args:
        example: Ids of any length, not padded.

    Returns:
        The message.

    Example:
    >>> b"token_ids" in serialize(Example([2, 300, 3], [0, 0, 0]))
    True
    """
    features = b"".join(
        # An entry of the map Features.feature: key, then Feature.int64_list.value.
        _field(1, _field(1, name) + _field(2, _field(3, _field(1, values))))
        for name, values in (
            (b"segment_ids", bytes(example.segment_ids)),
            (b"token_ids", b"".join(map(_varint, example.token_ids))),
        )
    )
    return _field(1, features)


def parse(serialized, record_format: RecordFormat, max_length: int) -> dict:
    """Parses a batch of records, in graph code.

    Args:
        serialized: String tensor [batch].
        record_format: Their format.
        max_length: Width of the result.

    Returns:
        A dict of int32 tensors [batch, max_length] `token_ids`, `segment_ids`,
        `padding_mask`. Records of Model Garden give the text as it was before masking,
        and where it was masked: `masked_positions` int32 [batch, masked] and
        `masked_weights` float32 [batch, masked].
    """
    if record_format.name == MODEL_GARDEN:
        return _parse_model_garden(serialized, record_format, max_length)
    import tensorflow as tf

    ragged = tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int32)
    parsed = tf.io.parse_example(
        serialized, {"token_ids": ragged, "segment_ids": ragged}
    )
    shape = [None, max_length]
    lengths = parsed["token_ids"].row_lengths()
    return {
        "token_ids": tf.cast(parsed["token_ids"].to_tensor(shape=shape), tf.int32),
        "segment_ids": tf.cast(parsed["segment_ids"].to_tensor(shape=shape), tf.int32),
        "padding_mask": tf.sequence_mask(lengths, max_length, dtype=tf.int32),
    }


def _parse_model_garden(serialized, record_format: RecordFormat, max_length: int):
    import tensorflow as tf

    _, word_ids, type_ids, length, masked = record_format
    ids = tf.io.FixedLenFeature([length], tf.int64)
    features = {word_ids: ids, "input_mask": ids, type_ids: ids}
    if masked:
        ids = tf.io.FixedLenFeature([masked], tf.int64)
        weights = tf.io.FixedLenFeature([masked], tf.float32)
        features |= dict(zip(_MASKED, (ids, ids, weights), strict=True))
    parsed = tf.io.parse_example(serialized, features)
    result = {
        "token_ids": parsed[word_ids],
        "segment_ids": parsed[type_ids],
        "padding_mask": parsed["input_mask"],
    }
    if masked:
        positions, originals, weights = (parsed[name] for name in _MASKED)
        chosen = tf.where(weights > 0)
        places = tf.stack([chosen[:, 0], tf.gather_nd(positions, chosen)], axis=1)
        result["token_ids"] = tf.tensor_scatter_nd_update(
            result["token_ids"], places, tf.gather_nd(originals, chosen)
        )
    padding = [[0, 0], [0, max_length - length]]
    result = {
        name: tf.pad(tf.cast(value, tf.int32), padding)
        for name, value in result.items()
    }
    if masked:
        result["masked_positions"] = tf.cast(positions, tf.int32)
        result["masked_weights"] = weights
    return result


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
    formats = [
        _probe(path, max_length=max_length, vocabulary_size=vocabulary_size)
        for path in paths
    ]
    for path, record_format in zip(paths, formats, strict=True):
        if record_format != formats[0]:
            raise DatasetError(
                f"{path}: its records are {record_format}, those of {paths[0]} are "
                f"{formats[0]}. Read files of one kind at a time."
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
    size, offset, count = os.path.getsize(path), 0, 0
    if not size:
        raise DatasetError(f"{path}: the file is empty. Make or copy it again.")
    with open(path, "rb", buffering=0) as file:
        while offset < size:
            file.seek(offset)
            header = file.read(_HEADER_BYTES)
            if len(header) == _HEADER_BYTES:
                (length,) = struct.unpack_from("<Q", header)
                offset += _HEADER_BYTES + length + _FOOTER_BYTES
                count += 1
            if len(header) < _HEADER_BYTES or offset > size:
                kind = "is cut short" if count > 1 else "is no TFRecord file"
                raise DatasetError(
                    f"{path}: {kind}: record {count} would end behind the file's "
                    f"{size} bytes. Make or copy it again."
                )
    return count


def _probe(
    path: str, *, max_length: int | None, vocabulary_size: int | None
) -> RecordFormat:
    """Finds the format by the first record; checks the first few hundred."""
    import tensorflow as tf

    found = None
    try:
        for record in tf.data.TFRecordDataset(path).take(_PROBED_RECORDS):
            features = tf.train.Example.FromString(record.numpy()).features.feature
            found = found or _format_of(path, features)
            ids = features[found.word_ids].int64_list.value
            masked_ids = features["masked_lm_ids"].int64_list.value
            _check_ids(path, [*ids, *masked_ids], vocabulary_size)
            if max_length and len(ids) > max_length:
                raise DatasetError(
                    f"{path}: a record of {len(ids)} tokens, more than "
                    f"max_length={max_length}. Pass max_length={len(ids)}, or prepare "
                    "the data for the shorter length."
                )
    except (tf.errors.OpError, ValueError) as error:
        if isinstance(error, DatasetError):
            raise
        raise DatasetError(f"{path}: a record does not parse ({error}).") from error
    except Exception as error:
        # The protocol buffer library's DecodeError derives from Exception only, and
        # the library is no direct dependency.
        if type(error).__name__ != "DecodeError":
            raise
        raise DatasetError(f"{path}: its records are no tf.train.Example.") from error
    return found


def _check_ids(path: str, ids: list[int], vocabulary_size: int | None) -> None:
    if vocabulary_size and ids and not 0 <= min(ids) <= max(ids) < vocabulary_size:
        raise DatasetError(
            f"{path}: token ids from {min(ids)} to {max(ids)}, outside the model's "
            f"vocabulary_size={vocabulary_size}. Use the vocabulary that the records "
            "were made with."
        )


def _format_of(path: str, features) -> RecordFormat:
    names = sorted(features)
    if "token_ids" in names and "segment_ids" in names:
        return RecordFormat(EXAMPLES)
    word_ids = next((name for name in _WORD_IDS if name in names), None)
    type_ids = next((name for name in _TYPE_IDS if name in names), None)
    masked = [name for name in _MASKED if name in names]
    complete = len(masked) in (0, len(_MASKED))
    if not (word_ids and type_ids and "input_mask" in names and complete):
        raise DatasetError(
            f"{path}: records hold the features {names}, which are neither token_ids "
            "and segment_ids nor those of Model Garden's BERT pretraining data "
            f"({', '.join((_WORD_IDS[0], 'input_mask', _TYPE_IDS[0], *_MASKED))})."
        )
    return RecordFormat(
        MODEL_GARDEN,
        word_ids,
        type_ids,
        len(features[word_ids].int64_list.value),
        len(features[masked[0]].int64_list.value) if masked else 0,
    )


def _field(number: int, payload: bytes) -> bytes:
    """A protocol buffer field of wire type 2: key, length, bytes."""
    return bytes([number << 3 | 2]) + _varint(len(payload)) + payload


def _make_varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


_SMALL_VARINTS = [_make_varint(value) for value in range(1 << 16)]


def _varint(value: int) -> bytes:
    return _SMALL_VARINTS[value] if value < 1 << 16 else _make_varint(value)
