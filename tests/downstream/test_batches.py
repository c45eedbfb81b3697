import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_corrupt.devices.batches import fed
from keras_corrupt.downstream.batches import (
    LENGTHS,
    Feature,
    make_batches,
    passes,
    plan,
)


def feature(length, value, example=0):
    inputs = {
        "token_ids": np.full(length, value, "int32"),
        "segment_ids": np.ones(length, "int32"),
    }
    targets = {
        "label": value,
        "score": value / 10,
        "tags": np.arange(1, length + 1),
    }
    return Feature(inputs, targets, example)


def numpy_batches(*args, **kwargs):
    return list(make_batches(*args, **kwargs))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(2, 100), min_size=1, max_size=60),
    st.integers(1, 9),
    st.sampled_from([None, 0, 1]),
)
def test_plan_uses_each_sequence_once_and_wastes_no_bucket(lengths, batch_size, seed):
    lengths = np.array(lengths)
    rng = None if seed is None else np.random.default_rng(seed)
    batches = plan(lengths, batch_size, [*LENGTHS[:4], 100], rng)
    used = np.concatenate([indices for indices, _ in batches])
    assert sorted(used) == list(range(len(lengths)))
    sizes = [len(indices) for indices, _ in batches]
    assert sum(size < batch_size for size in sizes) <= 1 and max(sizes) <= batch_size
    for indices, padded in batches:
        fitting = [n for n in (*LENGTHS, 100) if n >= lengths[indices].max()]
        assert padded == min(n for n in fitting if n <= 100)


def test_long_sequences_do_not_lengthen_short_ones():
    lengths = np.array([10, 100] * 64)
    padded = [length for _, length in plan(lengths, 8, [*LENGTHS[:4], 128])]
    assert padded == [16] * 8 + [128] * 8


def test_a_batch_by_hand():
    features = [feature(3, 7), feature(5, 9)]
    ((inputs, targets, weights, rows),) = numpy_batches(
        features, 3, 24, padding_id=1, rows=True
    )
    ids = [[7] * 3 + [1] * 13, [9] * 5 + [1] * 11, [7] * 3 + [1] * 13]
    np.testing.assert_array_equal(inputs["token_ids"], ids)
    mask = [[1] * n + [0] * (16 - n) for n in (3, 5, 3)]
    np.testing.assert_array_equal(inputs["padding_mask"], mask)
    np.testing.assert_array_equal(inputs["segment_ids"], mask)
    np.testing.assert_array_equal(targets["label"], [7, 9, 7])
    np.testing.assert_allclose(targets["score"], [0.7, 0.9, 0.7])
    np.testing.assert_array_equal(targets["tags"][1], [1, 2, 3, 4, 5] + [0] * 11)
    np.testing.assert_array_equal(weights, [1, 1, 0])  # the third only fills up
    np.testing.assert_array_equal(rows[:2], [0, 1])
    assert {a.dtype.name for a in (*inputs.values(), targets["label"])} == {"int32"}
    assert targets["score"].dtype == weights.dtype == "float32"


def test_every_feature_comes_once_a_pass_with_weight_one():
    features = [feature(2 + i % 40, i) for i in range(101)]
    dataset = make_batches(features, 8, 64, seed=3)
    assert len(dataset) == 13
    passes = []
    for _ in range(2):
        seen = []
        for _, targets, weights in dataset:
            assert len(weights) == 8
            seen += targets["label"][weights > 0].tolist()
        assert sorted(seen) == list(range(101))
        passes.append(seen)
    assert passes[0] != passes[1]


def test_the_seed_decides_the_order():
    features = [feature(4, i) for i in range(50)]

    def order(seed):
        batches = numpy_batches(features, 5, 16, seed=seed)
        return [i for _, targets, _ in batches for i in targets["label"]]

    assert order(1) == order(1) != order(2)
    assert order(None) == list(range(50))


def test_the_longest_sequence_allowed_is_a_bucket_of_its_own():
    ((inputs, *_),) = numpy_batches([feature(40, 1)], 1, 40)
    assert inputs["token_ids"].shape == (1, 40)


@pytest.mark.parametrize("count", [1, 3])
def test_fit_reads_pass_after_pass(count):
    """`fed` has looked at the first batch, to learn the shapes."""
    batches = passes(
        lambda number: [number] * count,
        lambda number, place, planned: np.array([number, place, planned]),
        count,
    )
    with fed(batches) as dataset:
        read = [[np.array(batch).tolist() for batch in dataset] for _ in range(3)]
    assert read == [[[i, place, i] for place in range(count)] for i in range(3)]


def test_errors():
    with pytest.raises(ValueError, match="empty"):
        make_batches([], 8, 16)
    with pytest.raises(ValueError, match="17 tokens.*max_length=16"):
        make_batches([feature(17, 1)], 8, 16)
