"""Examples as bytes of `tf.train.Example`, and batches of such bytes as arrays."""

from collections.abc import Sequence

import numpy as np

from keras_corrupt.data.examples import Example
from keras_corrupt.data.features import (
    EXAMPLES,
    MASKED,
    RecordFormat,
    check_features,
    features_of,
)
from keras_corrupt.data.info import DatasetError
from keras_corrupt.data.int_lists import int_lists


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
    segment_ids = bytes(example.segment_ids)
    token_ids = _varints(example.token_ids)
    features = b"".join(
        (
            _SEGMENT_IDS[len(segment_ids)],
            segment_ids,
            _TOKEN_IDS[len(token_ids)],
            token_ids,
        )
    )
    return _begin(1, len(features)) + features


class RecordError(DatasetError):
    """A record cannot be used.

    Args:
        message: The reason.
        place: The record's number among the records that were parsed together.
    """

    def __init__(self, message: str, place: int):
        super().__init__(message)
        self.place = place


def parse(
    records: Sequence[bytes],
    record_format: RecordFormat,
    max_length: int,
    vocabulary_size: int,
) -> dict[str, np.ndarray]:
    """Parses and checks a batch of records.

    Args:
        records: Serialised examples.
        record_format: Their format.
        max_length: Width of the result.
        vocabulary_size: All token ids are below.

    Returns:
        A dict of int32 arrays [batch, max_length] `token_ids`, `segment_ids`,
        `padding_mask`. Records of Model Garden give the text as it was before masking,
        and where it was masked: `masked_positions` int32 [batch, masked] and
        `masked_weights` float32 [batch, masked].

    Raises:
        RecordError: A record is damaged or foreign.

    Example:
    >>> record = serialize(Example([2, 300, 3], [0, 0, 0]))
    >>> parse([record], RecordFormat(EXAMPLES), 4, 301)["token_ids"]
    array([[  2, 300,   3,   0]], dtype=int32)
    """

    def features_at(place):
        try:
            features = features_of(records[place])
            check_features(features, record_format, max_length, vocabulary_size)
        except DatasetError as error:
            raise RecordError(str(error), place) from error
        return features

    if record_format.name != EXAMPLES:
        features = [features_at(place) for place in range(len(records))]
        return _of_model_garden(features, record_format, max_length)
    lists = int_lists(records)
    record_numbers = np.repeat(np.arange(len(records)), lists.lengths)
    sound = lists.sound & (lists.lengths <= max_length)
    wrong = (lists.token_ids >= vocabulary_size) | (lists.segment_ids > 1)
    sound[record_numbers[wrong]] = False
    if not sound.all():
        # These records are wrong, or have a layout that only other writers use.
        records = list(records)
        for place in np.flatnonzero(~sound).tolist():
            features = features_at(place)
            ids = (features[name].int64_list.value for name in record_format[1:3])
            records[place] = serialize(Example(*map(list, ids)))
        return parse(records, record_format, max_length, vocabulary_size)
    mask = np.arange(max_length) < lists.lengths[:, None]
    arrays = {name: np.zeros(mask.shape, np.int32) for name in record_format[1:3]}
    for name, array in arrays.items():
        array[mask] = getattr(lists, name)
    return arrays | {"padding_mask": mask.astype(np.int32)}


def _of_model_garden(features, record_format: RecordFormat, max_length: int) -> dict:
    def array(name, kind="int64_list"):
        return np.array([list(getattr(f[name], kind).value) for f in features])

    padding = [(0, 0), (0, max_length - record_format.length)]
    names = {
        "token_ids": record_format.word_ids,
        "segment_ids": record_format.type_ids,
        "padding_mask": "input_mask",
    }
    result = {name: array(feature) for name, feature in names.items()}
    masked = {}
    if record_format.masked:
        positions, originals = map(array, MASKED[:2])
        weights = array(MASKED[2], "float_list")
        row, place = np.nonzero(weights > 0)
        result["token_ids"][row, positions[row, place]] = originals[row, place]
        masked["masked_positions"] = positions.astype(np.int32)
        masked["masked_weights"] = weights.astype(np.float32)
    return {
        name: np.pad(value, padding).astype(np.int32) for name, value in result.items()
    } | masked


def _varint(value: int) -> bytes:
    """Writes a number seven bits a byte, the lowest first."""
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


_SMALL = [_varint(value) for value in range(1 << 16)]


def _varints(values: list[int]) -> bytes:
    try:
        return b"".join([_SMALL[value] for value in values])
    except IndexError:
        return b"".join(map(_varint, values))


def _begin(number: int, size: int) -> bytes:
    """Returns the beginning of a protocol buffer field of wire type 2."""
    return bytes([number << 3 | 2]) + _varint(size)


class _FeatureBegins(dict):
    """Size of a feature's values -> the bytes before them.

    It is an entry of the map `Features.feature`: key, then `Feature.int64_list.value`.
    """

    def __init__(self, name: bytes):
        super().__init__()
        self._key = _begin(1, len(name)) + name

    def __missing__(self, size):
        begin = b""
        for number in (1, 3, 2):
            begin = _begin(number, size + len(begin)) + begin
        begin = self._key + begin
        self[size] = _begin(1, len(begin) + size) + begin
        return self[size]


_SEGMENT_IDS, _TOKEN_IDS = map(_FeatureBegins, (b"segment_ids", b"token_ids"))
