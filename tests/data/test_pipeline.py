import shutil

import numpy as np
import pytest
import tensorflow as tf

from keras_corrupt.data.features import RecordFormat
from keras_corrupt.data.info import DatasetError
from keras_corrupt.data.pipeline import make_dataset
from keras_corrupt.data.reading import SHARDS_AT_ONCE, Examples

OPTIONS = {"batch_size": 6}


def rows(dataset, batches):
    return [batch["token_ids"] for batch in dataset.take(batches)]


def stored(info, split):
    examples = []
    for shard in info.split(split).shards:
        for record in tf.data.TFRecordDataset(str(info.directory / shard.file)):
            features = tf.train.Example.FromString(record.numpy()).features.feature
            examples.append(tuple(features["token_ids"].int64_list.value))
    return examples


def unpadded(batches):
    return [tuple(row[: np.count_nonzero(row)]) for batch in batches for row in batch]


def test_an_epoch_is_every_example_once(prepared):
    # [PAD] has id 0 and no text holds it, so rows end at their last id above 0.
    expected = sorted(stored(prepared, "train"))
    count = len(expected)
    steps = -(-2 * count // 6)
    stream = unpadded(rows(make_dataset(prepared.directory, **OPTIONS), steps))
    first, second = stream[:count], stream[count : 2 * count]
    assert sorted(first) == sorted(second) == expected
    assert first != second
    assert first != stored(prepared, "train")


def test_shards_are_mixed(prepared):
    shard_of = {}
    for number, shard in enumerate(prepared.train.shards):
        for record in tf.data.TFRecordDataset(str(prepared.directory / shard.file)):
            features = tf.train.Example.FromString(record.numpy()).features.feature
            shard_of[tuple(features["token_ids"].int64_list.value)] = number
    shards = len(prepared.train.shards)
    first = make_dataset(prepared.directory, batch_size=8 * shards)
    assert {shard_of[row] for row in unpadded(rows(first, 1))} == set(range(shards))


def test_resumes_at_any_step(prepared):
    assert len(prepared.train.shards) > 2
    epoch = prepared.train.examples
    steps = 3 * epoch // 6
    straight = rows(make_dataset(prepared.directory, seed=7, **OPTIONS), steps)
    for start in (0, 1, epoch // 6 - 1, epoch // 6, epoch // 6 + 1, 2 * epoch // 6 + 3):
        resumed = make_dataset(prepared.directory, seed=7, start_step=start, **OPTIONS)
        np.testing.assert_array_equal(rows(resumed, 5), straight[start : start + 5])


def test_seed_changes_the_order(prepared):
    one, other = (
        rows(make_dataset(prepared.directory, seed=seed, **OPTIONS), 3)
        for seed in (1, 2)
    )
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("start", [0, 5])
def test_the_global_batch_does_not_depend_on_hosts(prepared, start):
    alone = rows(make_dataset(prepared.directory, start_step=start, **OPTIONS), 10)
    for hosts in (2, 3):
        shares = [
            rows(
                make_dataset(
                    prepared.directory,
                    start_step=start,
                    num_hosts=hosts,
                    host=host,
                    **OPTIONS,
                ),
                10,
            )
            for host in range(hosts)
        ]
        for step, batch in enumerate(alone):
            parts = [share[step] for share in shares]
            assert len({len(part) for part in parts}) == 1
            np.testing.assert_array_equal(np.concatenate(parts), batch)


def test_hosts_have_as_many_batches_of_the_validation_split(prepared):
    total = len(make_dataset(prepared.directory, "validation", batch_size=1))
    for batch_size in (2, 4, 6):
        counts = {
            len(
                make_dataset(
                    prepared.directory,
                    "validation",
                    batch_size=batch_size,
                    num_hosts=2,
                    host=host,
                )
            )
            for host in range(2)
        }
        assert counts == {total // batch_size}
    with pytest.raises(ValueError, match="drop_remainder=False: num_hosts=2 hosts"):
        make_dataset(
            prepared.directory,
            "validation",
            batch_size=4,
            num_hosts=2,
            drop_remainder=False,
        )


def test_validation_is_one_pass_in_order(prepared):
    dataset = make_dataset(prepared.directory, "validation", batch_size=4)
    batches = list(dataset)
    assert len(dataset) == len(batches)
    tokens = unpadded(batch["token_ids"] for batch in batches)
    assert tokens == stored(prepared, "validation")
    assert len(batches[-1]["token_ids"]) == (prepared.validation.examples - 1) % 4 + 1
    dropped = make_dataset(
        prepared.directory, "validation", batch_size=4, drop_remainder=True
    )
    assert prepared.validation.examples % 4
    assert len(list(dropped)) == prepared.validation.examples // 4 == len(batches) - 1


def test_the_order_is_what_it_was(prepared):
    """Exactly, on every backend: runs of this version go on with it."""
    examples = Examples([""] * 40, [7] * 40, RecordFormat("examples"), seed=5)
    shards, ends = examples.order_of(3)
    by_hand = np.random.default_rng((5, 3)).permutation(40)
    assert shards.tolist() == by_hand.tolist() and ends.tolist() == [112, 224, 280]
    paths = [str(prepared.directory / s.file) for s in prepared.train.shards]
    counts = [s.examples for s in prepared.train.shards]
    stored_examples = Examples(paths, counts, RecordFormat("examples"), seed=5)
    shards = np.random.default_rng((5, 1)).permutation(len(paths))
    assert len(paths) <= SHARDS_AT_ONCE
    records = [(paths[s], n + 1) for s in shards for n in range(counts[s])]
    order = np.random.default_rng((5, 1, 1)).permutation(len(records))
    found = stored_examples.frames(len(records) + np.arange(20))
    assert [place for ((_, *place),) in found] == [list(records[i]) for i in order[:20]]


def test_arguments(prepared):
    def check(message, error=ValueError, **options):
        with pytest.raises(error, match=message):
            make_dataset(prepared.directory, **{"batch_size": 6, **options})

    check("batch_size=6 does not divide by num_hosts=4", num_hosts=4)
    check("host=2, num_hosts=2", num_hosts=2, host=2)
    check("split='test'", split="test")
    check("start_step=-1", start_step=-1)
    check("up to 32 tokens.*max_length=16", DatasetError, max_length=16)
    check("vocabulary_size=50", DatasetError, vocabulary_size=50)


@pytest.fixture
def copy(prepared, tmp_path):
    return shutil.copytree(prepared.directory, tmp_path / "copy")


def test_incomplete_directories(copy, tmp_path):
    shard = copy / "train-00001.tfrecord"
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(DatasetError, match="train-00001.*bytes, but dataset.json"):
        make_dataset(copy, batch_size=1)
    shard.unlink()
    with pytest.raises(DatasetError, match="train-00001.*missing"):
        make_dataset(copy, batch_size=1)
    (copy / "dataset.json").unlink()
    with pytest.raises(DatasetError, match="no dataset.json beside"):
        make_dataset(copy, batch_size=1)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DatasetError, match="holds no dataset.json"):
        make_dataset(tmp_path / "empty", batch_size=1)
    with pytest.raises(DatasetError, match="matches no record file"):
        make_dataset(tmp_path / "nothing*", batch_size=1)
