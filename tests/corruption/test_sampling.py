import itertools

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_corrupt.corruption import (
    Masking,
    replace_tokens,
    sample_negatives,
    sample_tokens,
)
from keras_corrupt.cpu_kernels import all_replacements
from keras_corrupt.devices.guests import replaced


@pytest.fixture(params=["plain", "kernels"], autouse=True)
def kernels(request):
    if request.param == "kernels" and keras.backend.backend() != "tensorflow":
        pytest.skip("the kernels are TensorFlow's")
    with replaced(all_replacements() if request.param == "kernels" else {}):
        yield


def test_samples_follow_the_softmax():
    """Over 700 tokens, so several blocks; a hundred are never drawn."""
    row = np.random.default_rng(0).normal(0, 2, 700)
    row[300:400] = -1e9
    logits = np.tile(row, (200, 100, 1)).astype("float32")
    samples = np.array(sample_tokens(logits, keras.random.SeedGenerator(3)))
    assert samples.shape == (200, 100) and samples.dtype == np.int32
    counts = np.bincount(samples.ravel(), minlength=700)
    assert counts[300:400].sum() == 0
    expected = samples.size * np.exp(row) / np.exp(row).sum()
    rare = expected < 5  # one group
    counts = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    chi2, freedom = ((counts - expected) ** 2 / expected).sum(), len(counts) - 1
    assert chi2 < freedom + 5 * np.sqrt(2 * freedom)


def test_samples_at_different_positions_are_independent():
    logits = np.zeros((5000, 2, 4), "float32")
    samples = np.array(sample_tokens(logits, keras.random.SeedGenerator(3)))
    table = np.zeros((4, 4))
    np.add.at(table, (samples[:, 0], samples[:, 1]), 1)
    chi2 = ((table - 312.5) ** 2 / 312.5).sum()
    assert chi2 < 15 + 5 * np.sqrt(30)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_replacement_writes_weighted_slots_only(seed):
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, 99, (4, 10)).astype("int32")
    positions = np.stack([rng.permutation(10)[:5] for _ in range(4)]).astype("int32")
    weights = rng.integers(0, 2, (4, 5)).astype("float32")
    # a spare slot may repeat a position that is written
    positions[:, 4] = np.where(weights[:, 4] == 0, positions[:, 0], positions[:, 4])
    new = rng.integers(0, 99, (4, 5)).astype("int32")
    expected = ids.copy()
    for row, slot in zip(*np.nonzero(weights), strict=True):
        expected[row, positions[row, slot]] = new[row, slot]
    out = replace_tokens(ids, Masking(positions, weights), new)
    assert np.array(out).tolist() == expected.tolist()


def test_negatives_are_successive_draws_without_replacement():
    """Each ordered triple is as frequent as drawing one by one would make it."""
    row, target, rows = np.array([1.5, -1.0, 0.3, 2.0, 0.0]), 3, 40_000
    logits = np.tile(row.astype("float32"), (rows, 1, 1))
    draws = sample_negatives(
        logits, np.full((rows, 1), target), 3, keras.random.SeedGenerator(3)
    )
    draws = np.array(draws)[:, 0]
    weight = np.exp(row)
    chi2, triples = 0.0, list(itertools.permutations([0, 1, 2, 4], 3))
    seen = 0
    for triple in triples:
        left, expected = weight.sum() - weight[target], rows
        for token in triple:
            expected *= weight[token] / left
            left -= weight[token]
        count = (draws == triple).all(axis=1).sum()
        seen += count
        chi2 += (count - expected) ** 2 / expected
    assert seen == rows  # the original and repetitions do not occur
    freedom = len(triples) - 1
    assert chi2 < freedom + 5 * np.sqrt(2 * freedom)


def test_negatives_at_different_positions_are_independent():
    logits = np.zeros((5000, 2, 5), "float32")
    draws = np.array(
        sample_negatives(
            logits, np.full((5000, 2), 4), 1, keras.random.SeedGenerator(3)
        )
    )[..., 0]
    table = np.zeros((4, 4))
    np.add.at(table, (draws[:, 0], draws[:, 1]), 1)
    chi2 = ((table - 312.5) ** 2 / 312.5).sum()
    assert chi2 < 15 + 5 * np.sqrt(30)


def test_a_certain_original_leaves_the_others_their_shares():
    """Beside it the softmax of the others is zero in float32."""
    rows, target, favourite = 5000, 300, 599
    row = np.zeros(700, "float32")
    row[target], row[favourite] = 200.0, np.log(698)  # as likely as all the rest
    logits = np.tile(row, (rows, 1, 1))
    draws = np.array(
        sample_negatives(
            logits, np.full((rows, 1), target), 1, keras.random.SeedGenerator(3)
        )
    ).ravel()
    assert target not in draws
    assert abs((draws == favourite).mean() - 0.5) < 4 * 0.5 / rows**0.5
    halves = draws[draws != favourite] < 350
    assert abs(halves.mean() - 349 / 698) < 4 * 0.5 / (rows / 2) ** 0.5
    samples = np.array(sample_tokens(logits, keras.random.SeedGenerator(3)))
    assert (samples == target).all()
