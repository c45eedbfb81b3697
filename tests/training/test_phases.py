"""Training in phases, and other loops with the same checkpoints and logs."""

import dataclasses
import json
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_corrupt.devices.batches import Batches
from keras_corrupt.models import Electra
from keras_corrupt.training import (
    AdamW,
    Checkpoints,
    Phase,
    PretrainConfig,
    loop,
    phases,
    pretrain,
)
from keras_corrupt.training.callbacks import read_metrics
from tests.conftest import without_graphs

ENCODER = {
    "vocabulary_size": 120,
    "num_layers": 1,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_heads": 2,
    "max_length": 40,
}


@pytest.fixture
def config(prepared, tmp_path, monkeypatch):
    """ELECTRA's two-stage training (Clark's thesis, 5.3.3)."""
    sizes = {"discriminator": ENCODER, "generator": {}}
    monkeypatch.setitem(Electra.presets, "tiny", sizes)
    config = PretrainConfig(
        model="Electra",
        preset="tiny",
        objective={"tied_embeddings": "none"},
        output=str(tmp_path / "run"),
        data=str(prepared.directory),
        sequence_length=32,
        batch_size=8,
        steps=5,
        learning_rate=1e-2,
        warmup_steps=0,
        interval=2,
        validation_batches=1,
        phases=(
            Phase("generator", 3, ("generator",), {"rtd": 0.0}),
            Phase("discriminator", 2, ("discriminator",), start="start_from_generator"),
        ),
    )
    with without_graphs():
        yield config


def arrays_of(model):
    return {
        "generator": [np.array(v) for v in model.generator.encoder.weights],
        "discriminator": [np.array(v) for v in model.encoder.weights],
        "head": [np.array(v) for v in model.discriminator.weights[-4:]],
    }


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_two_stages_train_one_network_each(config, monkeypatch):
    seen, fit = [], Electra.fit

    def spied(self, *args, **kwargs):
        before = arrays_of(self)
        result = fit(self, *args, **kwargs)
        seen.append((dict(self.loss_weights), before, arrays_of(self)))
        return result

    monkeypatch.setattr(Electra, "fit", spied)
    pretrain(config)
    first = [run for run in seen if run[0] == {"mlm": 1.0, "rtd": 0.0}]
    second = [run for run in seen if run[0] == {"mlm": 1.0, "rtd": 50.0}]
    assert len(first) + len(second) == len(seen)
    for _, before, after in first:
        assert not same(before["generator"], after["generator"])
        assert same(before["discriminator"], after["discriminator"])
        assert same(before["head"], after["head"])
    for _, before, after in second:
        assert same(before["generator"], after["generator"])
        assert not same(before["discriminator"], after["discriminator"])
    trained, start = first[-1][2], second[0][1]
    assert same(trained["generator"], start["discriminator"])
    rows = read_metrics(Path(config.output) / "metrics.csv")
    assert [row["step"] for row in rows] == [2, 3, 4, 5]
    # Each phase has a schedule of its own, which ends at zero.
    assert [row["learning_rate"] for row in rows] == pytest.approx(
        [0.01 / 3, 0, 0.01 / 2, 0]
    )


class Killed(BaseException):
    """Ends a run as SIGKILL would."""


def kill(config, killed_after, monkeypatch):
    """Runs until the checkpoint of a step is written."""
    save = Checkpoints.save

    def save_and_die(self, model, step, phase):
        save(self, model, step, phase)
        if step == killed_after:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "save", save_and_die)
        with pytest.raises(Killed):
            pretrain(config)


def test_a_run_goes_on_in_the_phase_where_it_was_killed(config, monkeypatch, tmp_path):
    whole = pretrain(dataclasses.replace(config, output=str(tmp_path / "whole")))
    for killed_after, phase in (3, "generator"), (4, "discriminator"):
        output = str(tmp_path / phase)
        killed = dataclasses.replace(config, output=output)
        kill(killed, killed_after, monkeypatch)
        path = Checkpoints(Path(output) / "checkpoints").path(killed_after)
        with np.load(path) as archive:
            description = json.loads(bytes(archive["description"]))
        assert (description["phase"], description["step"]) == (phase, killed_after)
        continued = pretrain(killed)
        for a, b in zip(whole.weights, continued.weights, strict=True):
            np.testing.assert_array_equal(np.array(a), np.array(b))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"networks": ("encoder",)}, "'a' names encoder among its `networks`.*generat"),
        ({"loss_weights": {"mws": 1}}, "'a' names mws.*has mlm, rtd"),
        (
            {"start": "nothing"},
            "'nothing' as its `start`, which is no method",
        ),
        ({"frozen": ("encoder",)}, "names encoder among its `frozen`"),
        ({"warmup_steps": 5}, "has 5 `warmup_steps`.*fewer than its 5 steps"),
        ({"steps": 6}, "6 steps together, but --steps is 5"),
    ],
)
def test_phases_that_cannot_work(config, tmp_path, change, message):
    phase = dataclasses.replace(Phase("a", 5), **change)
    with pytest.raises(ValueError, match=message):
        pretrain(dataclasses.replace(config, phases=(phase,)))
    assert list(tmp_path.iterdir()) == []


def test_a_generator_without_variables_has_no_phase(config):
    alone = Phase("alone", config.steps, networks=("generator",))
    config = dataclasses.replace(
        config, model="UnigramElectra", objective={}, phases=(alone,)
    )
    with pytest.raises(ValueError, match="trains generator, which has no variables in"):
        pretrain(config)


def test_phases_need_names_and_no_average(config):
    twice = dataclasses.replace(config, steps=6, phases=(Phase("a", 3), Phase("a", 3)))
    with pytest.raises(ValueError, match="different names; got"):
        pretrain(twice)
    with pytest.raises(ValueError, match="--ema cannot be used"):
        pretrain(dataclasses.replace(config, ema=0.5))


def test_what_a_phase_does_not_train_is_trained_again_later(sizes):
    model = Electra(**sizes)
    trainable, weights = model.trainable_variables, model.loss_weights
    phases.enter(Phase("a", 1, ("generator",), {"rtd": 0}), model, trainable, weights)
    trained = {id(v) for v in model.trainable_variables}
    assert trained == {id(v) for v in model.generator.trainable_variables}
    phases.enter(Phase("b", 1), model, trainable, weights)
    assert len(model.trainable_variables) == len(trainable)
    assert model.loss_weights == weights


# === A loop that is no pretraining ===


class Labelled(keras.Model):
    """Learns from labelled and unlabelled batches in turn, as CVT does."""

    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1, name="dense")
        self.dense.build((None, 2))
        self.dropout = keras.layers.Dropout(0.3, name="dropout")
        self.built = True

    def call(self, inputs, training=False):
        return self.dense(self.dropout(inputs["x"], training=training))[:, 0]

    def compute_loss(
        self, x=None, y=None, y_pred=None, sample_weight=None, training=True
    ):
        labelled = keras.ops.square(y_pred - x["y"]) * x["labelled"]
        return keras.ops.mean(labelled + 0.01 * keras.ops.square(y_pred))


def batches_from(step):
    def make(number):
        number += step
        x = np.random.default_rng(number).normal(size=(4, 2)).astype("float32")
        labelled = np.full(4, number % 2, "float32")
        return {"x": x, "y": x[:, 0], "labelled": labelled}

    return Batches(make)


def run_loop(directory, steps):
    keras.utils.set_random_seed(0)
    model = Labelled()
    model.compile(AdamW(0.1), jit_compile=False)
    model.optimizer.build(model.trainable_variables)
    directory.mkdir(exist_ok=True)
    finished = loop.train(
        model,
        batches_from,
        lambda model: {"val_loss": float(np.abs(model.dense.kernel).sum())},
        Checkpoints(directory / "checkpoints"),
        output=directory,
        steps=steps,
        interval=2,
    )
    assert finished
    variables = *model.variables, *model.optimizer.variables
    return [np.array(variable) for variable in variables]


def test_another_loop_continues_exactly(tmp_path):
    expected = run_loop(tmp_path / "whole", 8)
    run_loop(tmp_path / "parts", 4)
    found = run_loop(tmp_path / "parts", 8)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    rows, whole = (
        read_metrics(tmp_path / name / "metrics.csv") for name in ("parts", "whole")
    )
    assert [row["step"] for row in rows] == [2, 4, 6, 8]
    assert [r["val_loss"] for r in rows] == [r["val_loss"] for r in whole]
