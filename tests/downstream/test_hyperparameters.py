import numpy as np
import pytest

from keras_corrupt.downstream import TextClassifier
from keras_corrupt.downstream.finetuner import changed, optimizer_of
from keras_corrupt.downstream.hyperparameters import (
    Hyperparameters,
    published,
    search_space,
    size_of,
)
from tests.downstream.conftest import ENCODER


@pytest.mark.parametrize("rule, extra", [("paper", 0), ("released", 1)])
def test_every_variable_learns_at_the_rate_of_its_depth(tokenizer, rule, extra):
    encoder = {**ENCODER, "num_layers": 3, "embedding_size": 12}
    model = TextClassifier(encoder, tokenizer, labels=["a", "b"])
    settings = Hyperparameters(
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
    assert head > 0
    depths = {"head": 0, "layer_2": 1, "layer_1": 2, "layer_0": 3, "embedding": 4}
    for path, step in steps.items():
        part = next(part for part in depths if part in path)
        expected = 0.7 ** (depths[part] + (extra if part != "head" else 0))
        np.testing.assert_allclose(step / head, expected, rtol=1e-3, err_msg=path)
    assert len(steps) == len(variables)


def test_settings_are_those_of_the_system_that_pretrained():
    # Clark's thesis, table 5.2.
    small = published("Electra", "small", "MRPC")
    assert (small.learning_rate, small.layer_decay) == (3e-4, 0.8)
    assert (small.epochs, small.batch_size, small.weight_decay) == (3, 32, 0)
    assert published("Electra", "base", "squad20").epochs == 2
    assert published("Electra", "large", "RTE").epochs == 10
    assert published("Electra", "large", "RTE").layer_decay == 0.9
    assert published("MaskedLM", "base", "STS-B") == published(
        "Electra", "base", "STS-B"
    )
    # TEAMS, table 6: no layer-wise decay; the best epoch counts on GLUE.
    teams = published("Teams", "small", "CoLA")
    assert (teams.learning_rate, teams.layer_decay, teams.epochs) == (1e-4, 1.0, 5)
    assert teams.report == "best"
    squad = published("Teams", "large", "squad11")
    assert (squad.learning_rate, squad.batch_size, squad.epochs) == (3e-5, 48, 2)
    assert squad.report == "last"
    # COCO-LM, table 7.
    coco = published("CocoLM", "base", "CoLA")
    assert (coco.beta_2, coco.warmup_fraction, coco.clip_norm) == (0.98, 0.06, 0)


@pytest.mark.parametrize("system", ["Electra", "Teams", "CocoLM"])
@pytest.mark.parametrize("size", ["tiny", "small", "base", "large"])
@pytest.mark.parametrize("task", ["RTE", "MNLI", "squad20"])
def test_what_was_searched_are_settings(system, size, task):
    settings = published(system, size, task)
    for name, values in search_space(system, size, task).items():
        for value in values:
            assert getattr(changed(settings, {name: value}), name) == value


def test_sizes_are_told_by_width():
    class Encoder:
        hidden_size = 256

    assert size_of(Encoder) == "small"
    Encoder.hidden_size = 1024
    assert size_of(Encoder) == "large"


def test_unknown_settings_are_refused():
    with pytest.raises(ValueError, match="rate; known are learning_rate"):
        changed(published("Electra", "small", "RTE"), {"rate": 1})
    with pytest.raises(ValueError, match="`layer_decay`.*got 1.5"):
        optimizer_of(
            Hyperparameters(learning_rate=1e-3, epochs=1, layer_decay=1.5), 10, 2
        )
