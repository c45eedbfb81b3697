import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_corrupt.corruption import (
    Masking,
    choose_positions,
    mask_tokens,
    num_masked,
)
from tests.conftest import make_inputs

UNMASKABLE = (0, 2, 3)


def choose(inputs, rate, seed=0):
    generator = keras.random.SeedGenerator(seed)
    masking = choose_positions(inputs, rate, UNMASKABLE, generator)
    return np.array(masking.positions), np.array(masking.weights)


@settings(max_examples=30, deadline=None)
@given(
    rate=st.sampled_from([0.01, 0.1, 0.15, 0.25, 0.5, 0.99]),
    length=st.sampled_from([4, 20, 33]),
    seed=st.integers(0, 1000),
)
def test_masking_properties(rate, length, seed):
    inputs = make_inputs(batch=5, length=length, seed=seed)
    positions, weights = choose(inputs, rate, seed)
    assert positions.shape == weights.shape == (5, num_masked(rate, length))
    for row in range(5):
        chosen = positions[row][weights[row] == 1]
        ids = inputs["token_ids"][row]
        size = inputs["padding_mask"][row].sum()
        maskable = (~np.isin(ids, UNMASKABLE)).sum()
        # exactly ceil(rate * n), as integers: rate has two decimals
        assert len(chosen) == min(-(-round(rate * 100) * size // 100), maskable)
        assert len(set(chosen)) == len(chosen)
        assert (chosen < size).all()
        assert not np.isin(ids[chosen], UNMASKABLE).any()


def test_masking_is_uniform_over_maskable_positions():
    inputs = make_inputs(batch=1, length=12)
    many = {name: np.repeat(array, 20000, axis=0) for name, array in inputs.items()}
    positions, weights = choose(many, 0.25)
    counts = np.bincount(positions[weights == 1], minlength=12)
    maskable = ~np.isin(inputs["token_ids"][0], UNMASKABLE)
    assert (counts[~maskable] == 0).all()
    # 3 of m positions without replacement: a binomial with p = 3 / m each
    p = 3 / maskable.sum()
    deviation = np.sqrt(20000 * p * (1 - p))
    assert (abs(counts[maskable] - 20000 * p) < 4.5 * deviation).all()


def test_masking_pairs_are_as_frequent_as_without_replacement():
    inputs = make_inputs(batch=1, length=8)
    many = {name: np.repeat(array, 20000, axis=0) for name, array in inputs.items()}
    positions, weights = choose(many, 0.25)
    assert positions.shape[1] == 2 and weights.all()
    pairs = np.sort(positions, axis=1)
    _, counts = np.unique(pairs, axis=0, return_counts=True)
    m = (~np.isin(inputs["token_ids"][0], UNMASKABLE)).sum()
    assert len(counts) == m * (m - 1) // 2
    expected = 20000 / len(counts)
    chi2 = ((counts - expected) ** 2 / expected).sum()
    assert chi2 < len(counts) + 6 * np.sqrt(2 * len(counts))


@pytest.mark.parametrize("keep, random", [(0.0, 0.0), (0.15, 0.0), (0.1, 0.1)])
def test_mask_tokens_fractions(keep, random):
    rng = np.random.default_rng(0)
    ids = rng.integers(5, 1000, (200, 100)).astype("int32")
    positions = np.tile(np.arange(50, dtype="int32"), (200, 1))
    masking = Masking(positions, np.ones((200, 50), "float32"))
    seed = keras.random.SeedGenerator(1)
    out = np.array(mask_tokens(ids, masking, 4, 1000, keep, random, seed))
    assert (out[:, 50:] == ids[:, 50:]).all()
    kept = (out[:, :50] == ids[:, :50]).mean()
    masked = (out[:, :50] == 4).mean()
    assert abs(kept - keep) < 0.012
    assert abs(masked - (1 - keep - random)) < 0.015
    assert abs((1 - kept - masked) - random) < 0.012


def test_positions_change_from_step_to_step():
    inputs = make_inputs()
    seed = keras.random.SeedGenerator(0)
    first = np.array(choose_positions(inputs, 0.15, UNMASKABLE, seed).positions)
    second = np.array(choose_positions(inputs, 0.15, UNMASKABLE, seed).positions)
    assert (first != second).any()
