"""Batches of examples for training and evaluation."""

import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_corrupt.data.features import EXAMPLES, RecordFormat
from keras_corrupt.data.info import (
    INFO_FILE,
    DatasetError,
    DatasetInfo,
    load_dataset_info,
)
from keras_corrupt.data.mixing import check_fractions, mixed
from keras_corrupt.data.reading import Examples, check_count, read, rows_of
from keras_corrupt.data.record_files import check_records, count_records, find_records
from keras_corrupt.devices.batches import Batches

# Larger data are not walked from record to record before they are read: it would take
# minutes, and reading them shows damage in time.
_WALKED_BYTES = 2_000_000_000

# Examples that are read together, which takes a third of the time.
_READ_AT_ONCE = 1024


class _Files(NamedTuple):
    paths: list[str]
    format: RecordFormat
    counts: list[int]
    max_length: int
    vocabulary_size: int
    bounds: list[np.ndarray] | None = None


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
    drop_remainder: bool | None = None,
    mix: Sequence[tuple[str | os.PathLike, float]] = (),
    fill_rows: bool = False,
) -> Batches:
    """Returns batches of examples.

    The training split is endless: each epoch visits the shards in a new order, and the
    examples of every 16 of them in a new order, all by `(seed, epoch)`; a batch may
    join the end of one epoch to the start of the next. Batch k is a function of the
    arguments, so a run that starts at `start_step=k` sees what an uninterrupted run
    sees from step k on, on every backend.

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
        drop_remainder: Whether to drop a last batch that is not full. By default one
            host keeps such a batch of the validation split, and several hosts drop it.
            The training split has none.
        mix: Further directories made by `prepare_dataset` with the same vocabulary,
            each with its fraction f of the training examples: it has floor(n f) of the
            first n examples. With several directories one of them may have one example
            more. Each has epochs of its own.
        fill_rows: Whether a row holds several examples, as many neighbours in a file as
            fit into `max_length`. Rows then take the place of the examples above: the
            file alone decides them, an epoch has each once, in an order by `(seed,
            epoch)`, and batch k is a function of the arguments. The beginnings of all
            records are read first, to find the rows.

    Returns:
        `Batches` of dicts of int32 arrays [batch_size / num_hosts, max_length]
        `token_ids`, `segment_ids`, `padding_mask`; Model Garden's records also give
        `masked_positions` and `masked_weights` [batch_size / num_hosts, masked].
        With `fill_rows` there is `text_ids`, the number of a token's example in its
        row, from 1 on, and 0 for padding.
        The records are checked as they are read: a damaged one raises a `DatasetError`
        that names it.

    Raises:
        DatasetError: If the data is missing, incomplete, damaged, or does not fit
            `max_length` or `vocabulary_size`, or a mixed directory has another
            vocabulary.
        ValueError: If an argument is out of range, or rows of Model Garden's records
            are to be filled.
    """
    _check_arguments(split, batch_size, start_step, num_hosts, host)
    files = _find_files(data, split, max_length, vocabulary_size, fill_rows)
    streams, fractions = [files], []
    # Hosts take consecutive parts of each batch, so that the parts, one after the
    # other, are the batch that one host would see.
    size = batch_size // num_hosts
    if drop_remainder is None:
        drop_remainder = split == "train" or num_hosts > 1
    if split == "validation" and num_hosts > 1 and not drop_remainder:
        raise ValueError(
            f"drop_remainder=False: num_hosts={num_hosts} hosts cannot share a last "
            "batch that is not full. Leave it out, or read the split on one host."
        )
    if split == "train":
        fractions = [fraction for _, fraction in mix]
        check_fractions(fractions)
        options = files.max_length, fill_rows
        streams += [_find_mixed(other, data, *options) for other, _ in mix]
    else:
        seed = None
    examples = [Examples(f.paths, f.counts, f.format, seed, f.bounds) for f in streams]
    count = None
    if split == "validation":
        remaining = max(0, examples[0].total - start_step * batch_size)
        rounded_up = -(-remaining // batch_size)
        count = remaining // batch_size if drop_remainder else rounded_up

    at_once = -(-_READ_AT_ONCE // size)

    @functools.lru_cache(maxsize=2)
    def joined_batches(number):
        steps = start_step + number * at_once + np.arange(at_once)
        numbers = (steps * num_hosts + host)[:, None] * size + np.arange(size)
        numbers = numbers.ravel()
        if split == "validation":
            numbers = numbers[numbers < examples[0].total]
        corpus, numbers = mixed(numbers, fractions)
        return read(examples, corpus, numbers, files.max_length, files.vocabulary_size)

    def batch(number):
        number, place = divmod(number, at_once)
        rows = slice(place * size, (place + 1) * size)
        return {name: array[rows] for name, array in joined_batches(number).items()}

    return Batches(batch, count, varying=() if drop_remainder else (0,))


def _check_arguments(split, batch_size, start_step, num_hosts, host):
    if split not in ("train", "validation"):
        raise ValueError(f"split={split!r}: the splits are 'train', 'validation'.")
    if batch_size < 1 or start_step < 0:
        raise ValueError(
            f"batch_size={batch_size}, start_step={start_step}: pass at least 1 and 0."
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


def _find_files(data, split, max_length, vocabulary_size, fill_rows) -> _Files:
    if (Path(data) / INFO_FILE).exists():
        return _prepared_files(data, split, max_length, vocabulary_size, fill_rows)
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
    if fill_rows:
        raise ValueError(
            f"fill_rows=True: {data} holds records of Model Garden, whose rows are as "
            "they are. Leave it out, or prepare the text with prepare_dataset."
        )
    length = max_length or checked.format.length
    limit = vocabulary_size or np.iinfo(np.int32).max
    return _Files(checked.paths, checked.format, checked.examples, length, limit)


def _prepared_files(data, split, max_length, vocabulary_size, fill_rows) -> _Files:
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
    counts = [shard.examples for shard in files.shards]
    if sum(shard.bytes for shard in files.shards) <= _WALKED_BYTES:
        for path, count in zip(paths, counts, strict=True):
            check_count(path, count_records(path), count)
    length = max_length or info.max_length
    bounds = None
    if fill_rows:
        bounds = [rows_of(path, length, info.vocabulary_size) for path in paths]
    record_format = RecordFormat(EXAMPLES)
    return _Files(paths, record_format, counts, length, info.vocabulary_size, bounds)


def _find_mixed(other, data, max_length, fill_rows) -> _Files:
    fingerprint, mixed_fingerprint = (
        load_dataset_info(directory).tokenizer_fingerprint
        for directory in (data, other)
    )
    if mixed_fingerprint != fingerprint:
        raise DatasetError(
            f"{other}: was made with another vocabulary than {data}. Prepare it again "
            f"with {data}/tokenizer.json."
        )
    return _prepared_files(other, "train", max_length, None, fill_rows)


def _paths(info: DatasetInfo, split: str) -> list[str]:
    return [str(info.directory / shard.file) for shard in info.split(split).shards]
