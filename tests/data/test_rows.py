"""Rows that hold several examples."""

import numpy as np
import pytest

from keras_corrupt.data.features import EXAMPLES, RecordFormat
from keras_corrupt.data.info import DatasetError
from keras_corrupt.data.pipeline import make_dataset
from keras_corrupt.data.reading import Examples, read, rows_of
from tests.data.test_pipeline import stored
from tests.data.test_records import model_garden, unpacked, write

#: The examples have 32 tokens at most.
OPTIONS = {"batch_size": 6, "max_length": 80, "fill_rows": True}


def texts_of(batch):
    """The texts of each row of a batch; checks that only padding is left out."""
    rows = []
    for ids, texts, mask in zip(
        *(batch[name] for name in ("token_ids", "text_ids", "padding_mask")),
        strict=True,
    ):
        count = texts.max()
        assert (np.diff(texts[mask == 1]) >= 0).all() and not texts[mask == 0].any()
        rows.append([tuple(ids[texts == n]) for n in range(1, count + 1)])
        assert sum(map(len, rows[-1])) == mask.sum()
    return rows


def by_hand(lengths, row_length):
    """How many examples each row has."""
    counts, used = [], row_length
    for length in lengths:
        if used + length > row_length:
            counts, used = [*counts, 0], 0
        counts[-1] += 1
        used += length
    return counts


def test_validation_rows_hold_every_example_in_order(prepared):
    batches = make_dataset(prepared.directory, "validation", **OPTIONS)
    rows = [row for batch in batches for row in texts_of(batch)]
    expected = stored(prepared, "validation")
    assert [text for row in rows for text in row] == expected
    counts = by_hand(map(len, expected), 80)
    assert list(map(len, rows)) == counts and max(counts) > 2
    plain = make_dataset(prepared.directory, "validation", batch_size=len(expected))
    segments = plain[0]["segment_ids"][plain[0]["padding_mask"] == 1]
    filled = [b["segment_ids"][b["padding_mask"] == 1] for b in batches]
    np.testing.assert_array_equal(np.concatenate(filled), segments)


def test_an_epoch_is_every_example_once_and_goes_on_at_any_step(prepared):
    whole = make_dataset(prepared.directory, seed=7, **OPTIONS)
    rows, expected, steps = [], stored(prepared, "train"), 0
    total = sum(len(by_hand(map(len, shard), 80)) for shard in shards_of(prepared))
    while len(rows) < 2 * total:
        rows += texts_of(whole[steps])
        steps += 1
    epochs = rows[:total], rows[total : 2 * total]
    for epoch in epochs:
        assert sorted(text for row in epoch for text in row) == sorted(expected)
    assert epochs[0] != epochs[1] and total < len(expected)
    for start, hosts in ((total // 6, 1), (steps - 2, 3)):
        parts = [
            make_dataset(
                prepared.directory,
                **OPTIONS,
                seed=7,
                start_step=start,
                num_hosts=hosts,
                host=host,
            )[1]
            for host in range(hosts)
        ]
        for name, array in whole[start + 1].items():
            joined = np.concatenate([part[name] for part in parts])
            np.testing.assert_array_equal(joined, array)


def shards_of(info):
    """The examples of each shard, in order."""
    examples, shards = iter(stored(info, "train")), []
    for shard in info.train.shards:
        shards.append([next(examples) for _ in range(shard.examples)])
    return shards


def test_records_of_other_writers_are_measured_too(tmp_path):
    ids = [[2, 7, 3], [2, 7, 8, 9, 3], [2, 3]]
    records = [unpacked(token_ids=x, segment_ids=[0] * len(x)) for x in ids]
    path = write(tmp_path / "other.tfrecord", records)
    bounds = rows_of(path, 8, 10)
    assert bounds.tolist() == [0, 2, 3]
    examples = Examples([path], [3], RecordFormat(EXAMPLES), bounds=[bounds])
    batch = read([examples], np.zeros(2, int), np.arange(2), 8, 10)
    assert batch["text_ids"].tolist() == [[1, 1, 1, 2, 2, 2, 2, 2], [1, 1] + [0] * 6]
    with pytest.raises(DatasetError, match="record 2: 5 tokens, more than max_length"):
        rows_of(path, 4, 10)


def test_rows_of_model_garden_are_as_they_are(tmp_path):
    write(tmp_path / "a.tfrecord", [model_garden()])
    with pytest.raises(ValueError, match="fill_rows=True: .* whose rows are as they"):
        make_dataset(tmp_path, **OPTIONS)
