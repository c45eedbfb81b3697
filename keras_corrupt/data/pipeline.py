"""Batches for training and evaluation, through tf.data."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import tensorflow as tf

from keras_corrupt.data.autotuning import without_autotuning
from keras_corrupt.data.info import (
    INFO_FILE,
    DatasetError,
    DatasetInfo,
    load_dataset_info,
)
from keras_corrupt.data.mixing import check_fractions, mixed
from keras_corrupt.data.record_files import check_records, count_records, find_records
from keras_corrupt.data.records import EXAMPLES, RecordFormat, parse
from keras_corrupt.devices.accelerators import leave_to_jax

#: Shards that training reads in turn.
SHARDS_AT_ONCE = 16
# Larger data are not walked from record to record before they are read: it would take
# minutes, and TensorFlow's checksums show most damage in time.
_WALKED_BYTES = 2_000_000_000
# What reading or parsing a damaged record raises.
_DAMAGE = (
    tf.errors.DataLossError,
    tf.errors.InvalidArgumentError,
    tf.errors.NotFoundError,
    UnicodeDecodeError,  # by TensorFlow, of a message that quotes the record
)


class _Files(NamedTuple):
    paths: list[str]
    format: RecordFormat
    examples: int
    max_length: int
    vocabulary_size: int


def make_dataset(
    data: str | os.PathLike,
    split: str = "train",
    *,
    batch_size: int,
    max_length: int | None = None,
    vocabulary_size: int | None = None,
    seed: int = 0,
    start_step: int = 0,
    num_hosts: int = 1,
    host: int = 0,
    shuffle_buffer: int = 100_000,
    drop_remainder: bool | None = None,
    mix: Sequence[tuple[str | os.PathLike, float]] = (),
) -> tf.data.Dataset:
    """Streams batches of examples.

    The training split is endless: each epoch visits the shards in a new order, reads
    several in turn and shuffles within a buffer, all by `(seed, epoch)`, and a batch
    may join the end of one epoch to the start of the next. Batch k is a function of
    the arguments, so a run that starts at `start_step=k` sees what an uninterrupted
    run sees from step k on. Epochs before it are skipped by arithmetic, and within an
    epoch records are skipped before they are parsed.

    The validation split is one pass in order.

    Args:
        data: A directory made by `prepare_dataset`, or a glob, file or directory of
            Model Garden BERT pretraining records (which have no splits: `split` then
            only tells whether to shuffle and repeat).
        split: `"train"` or `"validation"`.
        batch_size: Examples of a global batch, all hosts together.
        max_length: Width of the batches; by default the length the data was made for.
        vocabulary_size: Tokens that the model knows, to check the data against.
        seed: Seed of the order.
        start_step: Global batches to skip.
        num_hosts: Processes that train together. Each reads the part `host` of every
            global batch; the batch is the same whatever their number.
        host: This process's number, from 0.
        shuffle_buffer: Examples to shuffle among, held in memory.
        drop_remainder: Whether to drop a last batch that is not full. By default the
            training split has none and the validation split keeps it.
        mix: Further directories made by `prepare_dataset` with the same vocabulary,
            each with its fraction of the training examples: of any first n, a fraction
            f has floor(n f). Each has epochs of its own.

    Returns:
        A dataset of dicts of int32 tensors [batch_size / num_hosts, max_length]
        `token_ids`, `segment_ids`, `padding_mask`; Model Garden's records also give
        `masked_positions` and `masked_weights` [batch_size / num_hosts, masked].

    Raises:
        DatasetError: If the data is missing, incomplete, damaged, or does not fit
            `max_length` or `vocabulary_size`, or a mixed directory has another
            vocabulary.
        ValueError: If an argument is out of range.

    The records are checked as they are read. TensorFlow's error about a damaged one
    names no file: read within `name_damage`, which does.
    """
    _check_arguments(split, batch_size, start_step, num_hosts, host, shuffle_buffer)
    leave_to_jax()
    files = _find_files(data, split, max_length, vocabulary_size)
    start = start_step * batch_size
    if split == "train":
        check_fractions([fraction for _, fraction in mix])
        others = [
            (_find_mixed(other, data, files.max_length), fraction)
            for other, fraction in mix
        ]

        def stream(files):
            return lambda start: _shuffled_epochs(files, seed, shuffle_buffer, start)

        others = [(stream(other), fraction) for other, fraction in others]
        records = mixed(stream(files), others, start)
    else:
        records = tf.data.TFRecordDataset(files.paths).skip(start)
    if drop_remainder is None:
        drop_remainder = split == "train"
    # Hosts take consecutive parts of each batch, so that theirs, one after the other,
    # are the batch that one host would see.
    batches = records.batch(batch_size // num_hosts, drop_remainder=drop_remainder)
    batches = batches.shard(num_hosts, host)

    batches = batches.map(
        lambda serialized: parse(
            serialized, files.format, files.max_length, files.vocabulary_size
        ),
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=True,
    )
    if split == "validation":
        # So that Keras, and a progress bar, know where the pass ends.
        size = batch_size // num_hosts
        rest = max(0, files.examples - start)
        count = rest // size if drop_remainder else -(-rest // size)
        count = len(range(host, count, num_hosts))
        batches = batches.apply(tf.data.experimental.assert_cardinality(count))
    return without_autotuning(batches.prefetch(tf.data.AUTOTUNE))


@contextlib.contextmanager
def name_damage(
    data: str | os.PathLike, vocabulary_size: int | None = None
) -> Iterator[None]:
    """Makes errors about damaged records, of `fit` too, name the file and the record.

    The files are searched once there was such an error.

    Args:
        data: What `make_dataset` was given.
        vocabulary_size: So too.

    Raises:
        DatasetError: In place of TensorFlow's error, if a record is damaged.

    Example:
    >>> with name_damage("data/news"):  # doctest: +SKIP
    ...     model.fit(make_dataset("data/news", batch_size=128), steps_per_epoch=1000)
    """
    try:
        yield
    except _DAMAGE as error:
        try:
            if (Path(data) / INFO_FILE).exists():
                info = load_dataset_info(data)
                info.check_files()
                for split in ("train", "validation"):
                    check_records(
                        _paths(info, split),
                        max_length=info.max_length,
                        vocabulary_size=info.vocabulary_size,
                        every=True,
                    )
            else:
                paths = find_records(data)
                check_records(paths, vocabulary_size=vocabulary_size, every=True)
        except DatasetError as damage:
            raise damage from error
        raise


def _check_arguments(split, batch_size, start_step, num_hosts, host, shuffle_buffer):
    if split not in ("train", "validation"):
        raise ValueError(f"split={split!r}: the splits are 'train', 'validation'.")
    if batch_size < 1 or start_step < 0 or shuffle_buffer < 1:
        raise ValueError(
            f"batch_size={batch_size}, start_step={start_step}, "
            f"shuffle_buffer={shuffle_buffer}: pass at least 1, 0 and 1."
        )
    if not 0 <= host < num_hosts:
        raise ValueError(
            f"host={host}, num_hosts={num_hosts}: hosts are numbered from 0 to "
            "num_hosts - 1."
        )
    if batch_size % num_hosts:
        raise ValueError(
            f"batch_size={batch_size} does not divide by num_hosts={num_hosts}. "
            f"Choose a multiple of {num_hosts}."
        )


def _find_files(data, split, max_length, vocabulary_size) -> _Files:
    if (Path(data) / INFO_FILE).exists():
        return _prepared_files(data, split, max_length, vocabulary_size)
    if os.path.isdir(data) and not any("tfrecord" in name for name in os.listdir(data)):
        load_dataset_info(data)  # Raises, with the remedy.
    checked = check_records(
        find_records(data), max_length=max_length, vocabulary_size=vocabulary_size
    )
    if checked.format.name == EXAMPLES:
        raise DatasetError(
            f"{data}: the records are of a prepared data set but there is no "
            f"{INFO_FILE} beside them. Pass the directory that prepare_dataset made."
        )
    length = max_length or checked.format.length
    examples = sum(checked.examples)
    limit = vocabulary_size or tf.int32.max
    return _Files(checked.paths, checked.format, examples, length, limit)


def _prepared_files(data, split, max_length, vocabulary_size) -> _Files:
    info = load_dataset_info(data)
    info.check_files()
    if max_length and max_length < info.max_length:
        raise DatasetError(
            f"{data}: its examples have up to {info.max_length} tokens, more than "
            f"max_length={max_length}. Prepare the corpus again with "
            f"--sequence_length {max_length}, or train with --sequence_length "
            f"{info.max_length}."
        )
    if vocabulary_size and vocabulary_size < info.vocabulary_size:
        raise DatasetError(
            f"{data}: its vocabulary has {info.vocabulary_size} tokens, more than the "
            f"model's vocabulary_size={vocabulary_size}. Give the model the data's."
        )
    paths, files = _paths(info, split), info.split(split)
    walked = sum(shard.bytes for shard in files.shards) <= _WALKED_BYTES
    for path, shard in zip(paths, files.shards, strict=True):
        found = count_records(path) if walked else shard.examples
        if found != shard.examples:
            raise DatasetError(
                f"{path}: holds {found} records, but {INFO_FILE} says "
                f"{shard.examples}. Copy the directory again or prepare it again."
            )
    length = max_length or info.max_length
    record_format = RecordFormat(EXAMPLES)
    return _Files(paths, record_format, files.examples, length, info.vocabulary_size)


def _find_mixed(other, data, max_length) -> _Files:
    ours, theirs = (
        load_dataset_info(directory).tokenizer_fingerprint
        for directory in (data, other)
    )
    if ours != theirs:
        raise DatasetError(
            f"{other}: was made with another vocabulary than {data}. Prepare it again "
            f"with {data}/tokenizer.json."
        )
    return _prepared_files(other, "train", max_length, None)


def _paths(info: DatasetInfo, split: str) -> list[str]:
    return [str(info.directory / shard.file) for shard in info.split(split).shards]


def _shuffled_epochs(
    files: _Files, seed: int, shuffle_buffer: int, start: int
) -> tf.data.Dataset:
    paths = tf.constant(files.paths)

    def epoch_records(epoch):
        # The order must not depend on a seed set for the whole program, and shuffle
        # takes no computed seed beside one; this clears it for this function only.
        tf.compat.v1.set_random_seed(None)
        key = tf.stack([tf.constant(seed, tf.int64), epoch])
        order = tf.random.experimental.stateless_shuffle(paths, seed=key)
        shuffle_seed = tf.random.stateless_uniform(
            [], seed=key, minval=1, maxval=tf.int64.max, dtype=tf.int64
        )
        # Neighbours in a corpus are alike (all of one source, say), and so is a shard.
        records = tf.data.Dataset.from_tensor_slices(order).interleave(
            tf.data.TFRecordDataset, cycle_length=SHARDS_AT_ONCE, block_length=1
        )
        return records.shuffle(shuffle_buffer, shuffle_seed)

    epoch, offset = divmod(start, files.examples)
    epochs = tf.data.Dataset.range(epoch, tf.int64.max)
    return epochs.flat_map(epoch_records).skip(offset)
