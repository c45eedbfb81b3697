"""The features of a record, a `tf.train.Example`, and whether they fit.

Two formats are known: the project's own (`token_ids`, `segment_ids`) and the BERT
pretraining records of TensorFlow Model Garden.
"""

import functools
from typing import NamedTuple

from keras_corrupt.data.info import DatasetError
from keras_corrupt.data.tfrecord import REMEDY

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


def features_of(record: bytes) -> dict:
    """Parses a record.

    Args:
        record: The bytes of a `tf.train.Example`.

    Returns:
        Name -> `tf.train.Feature`; a feature that the record lacks is an empty one.

    Raises:
        DatasetError: The bytes are no `tf.train.Example`.
    """
    from google.protobuf.message import DecodeError

    try:
        return _example_class().FromString(record).features.feature
    except DecodeError as error:
        raise DatasetError(f"is no tf.train.Example. {REMEDY}") from error


@functools.cache
def _example_class():
    """Makes the class of `tf.train.Example`; TensorFlow alone ships it ready-made."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    kind = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="keras_corrupt/example.proto", package="keras_corrupt", syntax="proto3"
    )

    def message(scope, name, *fields):
        descriptor = scope.add(name=name)
        for number, (field, kind_of, label, type_name) in enumerate(fields, 1):
            descriptor.field.add(
                name=field,
                number=number,
                type=kind_of,
                label=label,
                type_name=type_name,
            )
        return descriptor

    one, many = kind.LABEL_OPTIONAL, kind.LABEL_REPEATED
    lists = {
        "Bytes": kind.TYPE_BYTES,
        "Float": kind.TYPE_FLOAT,
        "Int64": kind.TYPE_INT64,
    }
    for name, value in lists.items():
        message(file.message_type, f"{name}List", ("value", value, many, None))
    message(
        file.message_type,
        "Feature",
        *(
            (f"{n.lower()}_list", kind.TYPE_MESSAGE, one, f".keras_corrupt.{n}List")
            for n in lists
        ),
    )
    entry = ".keras_corrupt.Features.FeatureEntry"
    features = message(
        file.message_type, "Features", ("feature", kind.TYPE_MESSAGE, many, entry)
    )
    message(
        features.nested_type,
        "FeatureEntry",
        ("key", kind.TYPE_STRING, one, None),
        ("value", kind.TYPE_MESSAGE, one, ".keras_corrupt.Feature"),
    ).options.map_entry = True
    message(
        file.message_type,
        "Example",
        ("features", kind.TYPE_MESSAGE, one, ".keras_corrupt.Features"),
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(
        pool.FindMessageTypeByName("keras_corrupt.Example")
    )


def format_of(features: dict) -> RecordFormat:
    """Finds the format of a record.

    Args:
        features: By `features_of`.

    Raises:
        DatasetError: The format is not known.
    """
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
            "nor the features of Model Garden's BERT pretraining data "
            f"({', '.join((WORD_IDS[0], 'input_mask', TYPE_IDS[0], *MASKED))})."
        )
    return RecordFormat(
        MODEL_GARDEN,
        word_ids,
        type_ids,
        len(features[word_ids].int64_list.value),
        len(features[masked[0]].int64_list.value) if masked else 0,
    )


def check_features(
    features: dict,
    record_format: RecordFormat,
    max_length: int | None,
    vocabulary_size: int | None,
) -> None:
    """Checks the features of a record.

    Args:
        features: By `features_of`.
        record_format: The format that it must have.
        max_length: Tokens that the model allows, if that is to be checked.
        vocabulary_size: Tokens that the model knows, if that is to be checked.

    Raises:
        DatasetError: The record has another format, or values that a model cannot
            train on.
    """
    if format_of(features) != record_format:
        raise DatasetError(
            f"holds the features {sorted(features)} in other numbers than the records "
            f"before it. {REMEDY}"
        )
    ids, segment_ids = (
        features[name].int64_list.value
        for name in (record_format.word_ids, record_format.type_ids)
    )
    if not ids or len(ids) != len(segment_ids):
        raise DatasetError(
            f"{len(ids)} token ids and {len(segment_ids)} segment ids. {REMEDY}"
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
        raise DatasetError(f"segment ids that are neither 0 nor 1. {REMEDY}")
