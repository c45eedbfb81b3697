"""Examples of several corpora in one stream."""

import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf

from keras_corrupt.data.info import DatasetError
from keras_corrupt.data.mixing import mixed
from keras_corrupt.data.pipeline import make_dataset
from keras_corrupt.data.prepare import prepare_dataset

OPTIONS = {"batch_size": 6, "seed": 3}


@pytest.fixture(scope="module")
def others(prepared, settings, write_corpus, tmp_path_factory):
    """Two further corpora with the vocabulary of the first."""
    folder = tmp_path_factory.mktemp("others")
    vocabulary = prepared.directory / "tokenizer.json"
    infos = []
    for name, documents in (("old", 20), ("older", 40)):
        path = write_corpus(folder / f"{name}.txt", documents, seed=len(name))
        given = {**settings, "vocabulary": vocabulary}
        infos.append(prepare_dataset(path, folder / name, **given))
    return infos


def examples_of(info):
    found = set()
    for shard in info.train.shards:
        for record in tf.data.TFRecordDataset(str(info.directory / shard.file)):
            features = tf.train.Example.FromString(record.numpy()).features.feature
            found.add(tuple(features["token_ids"].int64_list.value))
    return found


def stream(info, mix, batches, **changes):
    dataset = make_dataset(info.directory, mix=mix, **{**OPTIONS, **changes})
    return np.concatenate([batch["token_ids"] for batch in dataset.take(batches)])


def test_each_corpus_has_its_fraction(prepared, others):
    parts = [examples_of(info) for info in (prepared, *others)]
    assert not parts[0] & parts[1] and not parts[1] & parts[2]
    mix = [(others[0].directory, 0.3), (others[1].directory, 0.125)]
    rows = [tuple(row[row > 0]) for row in stream(prepared, mix, 80)]
    for count in (10, 100, 480):
        found = [sum(row in part for row in rows[:count]) for part in parts]
        assert sum(found) == count
        assert found[2] == int(0.125 * count)
        assert abs(found[1] - 0.3 * count) <= 1
    # Each has its own epochs: nothing is seen twice before all is seen once.
    old = [row for row in rows if row in parts[1]]
    epoch = others[0].train.examples
    assert len(old) > epoch
    assert set(old[:epoch]) == parts[1]


def test_a_mixture_resumes_at_any_step(prepared, others):
    mix = [(others[0].directory, 0.3), (others[1].directory, 0.125)]
    whole = stream(prepared, mix, 60)
    for start in (1, 7, 41):
        part = stream(prepared, mix, 4, start_step=start)
        np.testing.assert_array_equal(part, whole[6 * start :][:24])
    hosts = [stream(prepared, mix, 5, num_hosts=2, host=host) for host in (0, 1)]
    joined = np.concatenate([h.reshape(5, 3, -1) for h in hosts], axis=1)
    np.testing.assert_array_equal(joined.reshape(30, -1), whole[:30])


def test_what_is_mixed_in_changes_nothing_else(prepared, others):
    alone = stream(prepared, (), 30)
    own = examples_of(prepared)
    rows = stream(prepared, [(others[0].directory, 0.2)], 30)
    rest = [row for row in rows if tuple(row[row > 0]) in own]
    np.testing.assert_array_equal(rest, alone[: len(rest)])
    np.testing.assert_array_equal(
        stream(prepared, [(others[0].directory, 0.0)], 5), alone[:30]
    )


@pytest.mark.parametrize("fractions", [(1.0,), (-0.1,), (0.5, 0.5), (float("nan"),)])
def test_fractions_that_leave_nothing(prepared, others, fractions):
    mix = [(others[0].directory, fraction) for fraction in fractions]
    with pytest.raises(ValueError, match="--mix has the fractions .*less than 1"):
        make_dataset(prepared.directory, mix=mix, **OPTIONS)


def test_another_vocabulary_is_refused(prepared, corpus, settings, tmp_path):
    smaller = {**settings, "vocabulary_size": 90}
    other = prepare_dataset(corpus, tmp_path / "other", **smaller)
    with pytest.raises(DatasetError, match="other: was made with another vocabulary"):
        make_dataset(prepared.directory, mix=[(other.directory, 0.1)], **OPTIONS)


def test_longer_examples_are_refused(prepared, others, tmp_path):
    long = dataclasses.replace(others[0], max_length=64)
    path = long.directory / "dataset.json"
    text = path.read_text()
    try:
        path.write_text(json.dumps({**json.loads(text), "max_length": 64}))
        with pytest.raises(DatasetError, match="up to 64 tokens, more than max_length"):
            make_dataset(prepared.directory, mix=[(long.directory, 0.1)], **OPTIONS)
    finally:
        path.write_text(text)


def test_many_steps_on_the_proportions_are_exact():
    start = 10**12
    mixture = mixed(np.arange(start, start + 100), [0.1, 0.2])
    found = {0: [], 1: [], 2: []}
    for corpus, number in zip(*mixture, strict=True):
        found[int(corpus)].append(int(number))
    assert [len(numbers) for numbers in found.values()] == [70, 10, 20]
    for numbers, share in zip(found.values(), (0.7, 0.1, 0.2), strict=True):
        assert abs(numbers[0] - share * start) <= 1
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
