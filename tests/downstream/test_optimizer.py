import dataclasses

import numpy as np
import pytest

from keras_corrupt.downstream import TextClassifier
from keras_corrupt.downstream.optimizer import optimizer_of
from keras_corrupt.models.fine_tuning import FineTuningSettings
from tests.downstream.conftest import ENCODER


@pytest.mark.parametrize("rule, extra", [("paper", 0), ("released", 1)])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_every_variable_learns_at_the_rate_of_its_depth(tokenizer, rule, extra, norm):
    encoder = {**ENCODER, "num_layers": 3, "embedding_size": 12, "norm": norm}
    model = TextClassifier(encoder, tokenizer, labels=["a", "b"])
    settings = FineTuningSettings(
        learning_rate=0.01,
        epochs=1,
        layer_decay=0.7,
        layer_decay_rule=rule,
        warmup_fraction=0,
    )
    optimizer = optimizer_of(settings, 10, num_layers=3)
    variables = model.trainable_variables
    before = [np.array(v) for v in variables]
    optimizer.build(variables)
    optimizer.apply([np.ones(v.shape, "float32") for v in variables], variables)
    # All gradients are alike, so the steps differ by the rates alone.
    steps = {
        v.path: np.unique((old - np.array(v)).round(7))
        for v, old in zip(variables, before, strict=True)
    }
    head = steps["head/dense/kernel"].mean()
    assert head == pytest.approx(0.01, rel=1e-2)  # Adam's first step is the rate.
    depths = {
        "head": 0,
        "final_norm": 1,
        "layer_2": 1,
        "layer_1": 2,
        "layer_0": 3,
        "embedding": 4,
    }
    for path, step in steps.items():
        part = next(part for part in depths if part in path)
        expected = 0.7 ** (depths[part] + (extra if part != "head" else 0))
        np.testing.assert_allclose(step / head, expected, rtol=1e-3, err_msg=path)
    assert len(steps) == len(variables)


def test_the_rate_rises_in_a_fraction_of_all_epochs_updates_and_falls_in_the_rest():
    settings = FineTuningSettings(
        learning_rate=0.01,
        epochs=3,
        warmup_fraction=0.2,
        weight_decay=0.3,
        beta_2=0.98,
        bias_correction=False,
        clip_norm=0.5,
    )
    optimizer = optimizer_of(settings, 10, num_layers=1)
    rates = []
    for step in (0, 3, 6, 15, 30):
        optimizer.iterations.assign(step)
        rates.append(float(optimizer.learning_rate))
    # Six of 30 updates are the warm-up; the factor 1 - step / 30 falls all the time.
    expected = np.array([0, 1 / 2 * 27 / 30, 24 / 30, 15 / 30, 0]) * 0.01
    np.testing.assert_allclose(rates, expected, rtol=1e-5, atol=1e-9)
    config = optimizer.get_config()
    given = {"weight_decay": 0.3, "beta_2": 0.98, "bias_correction": False}
    assert {name: config[name] for name in given} == given
    assert optimizer.global_clipnorm == 0.5
    never = dataclasses.replace(settings, clip_norm=0.0)
    assert optimizer_of(never, 10, num_layers=1).global_clipnorm is None
