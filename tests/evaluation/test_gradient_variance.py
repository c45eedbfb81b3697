"""The variance of gradients, against NumPy and a model small enough to enumerate."""

import itertools
import sys

import keras
import numpy as np
import pytest

from keras_corrupt import tokenizers
from keras_corrupt.evaluation import gradient_variance
from keras_corrupt.evaluation.gradient_variance import (
    Settings,
    masks_at_distance,
    measure,
    variances,
)
from keras_corrupt.evaluation.gradients import GradientOf
from keras_corrupt.models import MaskedLM
from tests.conftest import SIZES, make_inputs
from tests.models.conftest import gradients

IDS = {"mask_id": 4, "unmaskable_ids": (0, 2, 3)}
QUIET = {"dropout": 0.0, "attention_dropout": 0.0}


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(0)
    encoder = SIZES["discriminator"] | QUIET | {"initializer_range": 0.3}
    return MaskedLM(encoder, keep_rate=0.0, random_rate=0.0, **IDS)


def static(inputs):
    positions = np.tile(np.array([[1, 3, 5]], "int32"), (len(inputs["token_ids"]), 1))
    weights = np.ones(positions.shape, "float32")
    return {**inputs, "masked_positions": positions, "masked_weights": weights}


def test_gradients_are_those_of_the_backend(model):
    inputs = static(make_inputs())
    expected = gradients(model, inputs, ["mlm"])
    before = [np.array(variable) for variable in model.trainable_variables]
    gradient = GradientOf(model)(inputs)
    expected = np.concatenate(
        [np.ravel(expected[id(v)]) for v in model.trainable_variables]
    )
    np.testing.assert_allclose(gradient, expected, rtol=1e-3, atol=1e-5)
    after = [np.array(variable) for variable in model.trainable_variables]
    for a, b in zip(before, after, strict=True):
        np.testing.assert_array_equal(a, b)


def test_equation_7_for_all_masks_of_a_small_text():
    rng = np.random.default_rng(0)
    # A gradient for each mask of 2 of 4 positions: some of each position, and more.
    weights = rng.normal(size=(4, 3))
    masks = list(itertools.combinations(range(4), 2))
    extra = dict(zip(masks, rng.normal(size=(6, 3)) * 0.3, strict=True))
    g = {mask: weights[list(mask)].sum(axis=0) + extra[mask] for mask in masks}
    mean = np.mean(list(g.values()), axis=0)
    variance = np.mean([np.sum((x - mean) ** 2) for x in g.values()])
    other = {mask: tuple(sorted({*range(4)} - {*mask})) for mask in masks}
    pairs = [(g[mask] - mean) @ (g[other[mask]] - mean) for mask in masks]
    covariance = np.mean(pairs)
    disjoint = np.mean([np.sum(((g[m] + g[other[m]]) / 2 - mean) ** 2) for m in masks])
    np.testing.assert_allclose(disjoint, variance / 2 + covariance / 2)  # (7)

    drawn = [masks[i] for i in rng.integers(0, 6, 3000)]
    sets = np.array([[g[mask], g[other[mask]]] for mask in drawn])
    estimates = variances(sets)
    exact = (variance, covariance, disjoint)
    np.testing.assert_allclose(estimates, exact, atol=0.1 * variance)
    one, cov, both = estimates
    np.testing.assert_allclose(both, one / 2 + cov / 2, rtol=1e-6)
    # Masks that are drawn by themselves have no covariance.
    first, second = rng.integers(0, 6, (2, 3000))
    alone = [[g[masks[i]], g[masks[j]]] for i, j in zip(first, second, strict=True)]
    exact = (variance, 0.0, variance / 2)
    np.testing.assert_allclose(variances(np.array(alone)), exact, atol=0.1 * variance)
    with pytest.raises(ValueError, match="2 draws or more; got 1"):
        variances(sets[:1])


def test_masks_have_the_distance_asked_for():
    rng = np.random.default_rng(0)
    for shared in range(5):
        a, b = masks_at_distance(rng, np.arange(3, 20), 4, shared)
        assert len({*a}) == len({*b}) == 4
        assert len({*a} & {*b}) == shared


def test_covariance_falls_with_distance(model):
    """Equal masks have all of the variance in common; it is the assumption's end."""
    settings = Settings("", "", "", texts=2, draws=24, num_masks=2, mask_rate=0.25)
    batch = make_inputs(batch=2)
    parts, distances = measure(GradientOf(model), batch, (0, 2, 3), settings)
    means = {place: np.mean(values) for place, values in distances.items()}
    assert min(means) == 0.0 and max(means) == 1.0
    assert means[0.0] > 0.5 and means[0.0] > means[1.0] + 0.5
    # Two texts and few draws; (7) without covariance gives a half.
    np.testing.assert_allclose(np.mean(parts["independent"]), 0.5, atol=0.2)


def test_masks_have_the_slots_of_the_longest_text():
    """0.07 * 100 is 7.000000000000001 in floats."""
    settings = Settings("", "", "", draws=2, num_masks=2, mask_rate=0.07)
    ids = np.full((2, 100), 7)
    ids[1, 60:] = 0  # ceil(4.2) of its tokens are masked
    counts = []

    def gradient_of(inputs):
        assert inputs["masked_positions"].shape == (1, 7)
        counts.append(int(inputs["masked_weights"].sum()))
        return np.random.default_rng(len(counts)).normal(size=3)

    measure(gradient_of, {"token_ids": ids, "padding_mask": ids > 0}, (0,), settings)
    assert set(counts[: len(counts) // 2]) == {7} and {*counts} == {5, 7}


def test_the_command(model, prepared, tmp_path, monkeypatch, capsys):
    tokenizer = tokenizers.load(prepared.directory)
    sizes = {"vocabulary_size": tokenizer.vocabulary_size, "max_length": 32}
    config = SIZES["discriminator"] | sizes
    MaskedLM(config, tokenizer=tokenizer).save_to_preset(tmp_path / "preset")
    flags = ["--texts", "2", "--draws", "3", "--output", str(tmp_path / "out")]
    arguments = [str(tmp_path / "preset"), str(prepared.directory), *flags]
    monkeypatch.setattr(sys, "argv", ["gradient_variance", *arguments])
    gradient_variance.main()
    printed = capsys.readouterr().out
    assert "| equation (7) without covariance | 0.2500 |" in printed
    assert "| variance of 4 independent masks | " in printed
    assert (tmp_path / "out" / "gradient_variance.png").stat().st_size > 1000
    for flag, value in [("--num_masks", "9"), ("--draws", "1"), ("--texts", "0")]:
        monkeypatch.setattr(sys, "argv", ["x", *arguments, flag, value])
        with pytest.raises(SystemExit, match=f"{flag} {value}"):
            gradient_variance.main()


def test_texts_too_short_for_the_masks_are_left_out(model, capsys):
    settings = Settings("", "", "", draws=2, num_masks=2, mask_rate=0.25)
    batch = make_inputs(batch=2)
    batch["padding_mask"][1, 2:] = 0  # [CLS] and a token
    parts, _ = measure(GradientOf(model), batch, (0, 2, 3), settings)
    assert len(parts["covariance"]) == 1 and np.isfinite(parts["covariance"][0])
    assert "1 of 2 texts are too short" in capsys.readouterr().out
    short = {name: array[1:] for name, array in batch.items()}
    with pytest.raises(ValueError, match="No text has 2 tokens to mask"):
        measure(GradientOf(model), short, (0, 2, 3), settings)
