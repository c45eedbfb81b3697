"""TFRecord files: examples as `tf.train.Example`, written and parsed.

Two formats are read: the project's own (`token_ids`, `segment_ids`) and the BERT
pretraining records of TensorFlow Model Garden, whose masks are undone. TensorFlow is
imported where it is used, for processes that only serialise need not load it.
"""

from typing import NamedTuple

import numpy as np

from keras_corrupt.data.examples import Example

EXAMPLES = "examples"
MODEL_GARDEN = "model_garden"
# Model Garden's tools have used two names for the same feature.
WORD_IDS = ("input_word_ids", "input_ids")
TYPE_IDS = ("input_type_ids", "segment_ids")
MASKED = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")


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


def parse(
    serialized, record_format: RecordFormat, max_length: int, vocabulary_size: int
) -> dict:
    """Parses and checks a batch of records, in graph code.

    Args:
        serialized: String tensor [batch].
        record_format: Their format.
        max_length: Width of the result.
        vocabulary_size: All token ids are below.

    Returns:
        A dict of int32 tensors [batch, max_length] `token_ids`, `segment_ids`,
        `padding_mask`. Records of Model Garden give the text as it was before masking,
        and where it was masked: `masked_positions` int32 [batch, masked] and
        `masked_weights` float32 [batch, masked].

    Raises:
        tf.errors.InvalidArgumentError: When it runs, if a record is damaged or foreign.
            `name_damage` tells which.
    """
    if record_format.name == MODEL_GARDEN:
        return _parse_model_garden(
            serialized, record_format, max_length, vocabulary_size
        )
    import tensorflow as tf

    ragged = tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int32)
    parsed = tf.io.parse_example(
        serialized, {"token_ids": ragged, "segment_ids": ragged}
    )
    token_ids, segment_ids = parsed["token_ids"], parsed["segment_ids"]
    # As unsigned numbers the negative ones are too large as well.
    largest, largest_segment = (
        tf.reduce_max(tf.bitcast(ids.flat_values, tf.uint64))
        for ids in (token_ids, segment_ids)
    )
    splits = token_ids.row_splits
    sound = segment_ids.row_splits[1:] == splits[1:]
    sound &= (largest < vocabulary_size) & (largest_segment < 2)
    # Looking a row up makes the mask and checks at once: to have no row is an error. An
    # operation of its own for that would take longer.
    row = tf.where(sound, splits[1:] - splits[:-1] - 1, -1)
    parsed = {
        name: tf.cast(ids.to_tensor(shape=[None, max_length]), tf.int32)
        for name, ids in parsed.items()
    }
    return parsed | {"padding_mask": tf.gather(np.tri(max_length, dtype="int32"), row)}


def _parse_model_garden(
    serialized, record_format: RecordFormat, max_length: int, vocabulary_size: int
):
    import tensorflow as tf

    _, word_ids, type_ids, length, masked = record_format
    ids = tf.io.FixedLenFeature([length], tf.int64)
    features = {word_ids: ids, "input_mask": ids, type_ids: ids}
    if masked:
        ids = tf.io.FixedLenFeature([masked], tf.int64)
        weights = tf.io.FixedLenFeature([masked], tf.float32)
        features |= dict(zip(MASKED, (ids, ids, weights), strict=True))
    parsed = tf.io.parse_example(serialized, features)
    result = {
        "token_ids": parsed[word_ids],
        "segment_ids": parsed[type_ids],
        "padding_mask": parsed["input_mask"],
    }
    if masked:
        positions, originals, weights = (parsed[name] for name in MASKED)
        chosen = tf.where(weights > 0)
        places = tf.stack([chosen[:, 0], tf.gather_nd(positions, chosen)], axis=1)
        result["token_ids"] = tf.tensor_scatter_nd_update(
            result["token_ids"], places, tf.gather_nd(originals, chosen)
        )
    padding = [[0, 0], [0, max_length - length]]
    ids = result["token_ids"]
    sound = tf.reduce_all((ids >= 0) & (ids < vocabulary_size))
    message = f"a record holds a token id outside vocabulary_size={vocabulary_size}"
    with tf.control_dependencies([tf.debugging.Assert(sound, [message])]):
        result = {
            name: tf.pad(tf.cast(value, tf.int32), padding)
            for name, value in result.items()
        }
    if masked:
        result["masked_positions"] = tf.cast(positions, tf.int32)
        result["masked_weights"] = weights
    return result


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
    """What a protocol buffer field of wire type 2 begins with, before its bytes."""
    return bytes([number << 3 | 2]) + _varint(size)


class _FeatureBegins(dict):
    """Size of a feature's values -> what comes before them.

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
