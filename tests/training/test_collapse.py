import contextlib
import dataclasses
import io
import json
from pathlib import Path

import numpy as np
import pytest

from keras_corrupt.data import load_dataset_info
from keras_corrupt.devices.batches import Batches
from keras_corrupt.models import Electra, MaskedLM
from keras_corrupt.training import collapse, pretrain
from keras_corrupt.training.batches import validation_batches
from keras_corrupt.training.callbacks import read_metrics
from keras_corrupt.training.collapse import (
    CollapseError,
    CollapseWatch,
    TokenSpreads,
    remedy_for,
    slowed,
)
from keras_corrupt.training.phases import Phase
from tests.conftest import make_inputs
from tests.models.conftest import kill
from tests.training.conftest import assert_same_weights

pytestmark = pytest.mark.usefixtures("presets")


@pytest.fixture(autouse=True)
def judged_from_the_start(monkeypatch):
    monkeypatch.setattr(collapse, "FIRST_JUDGED", 0)


def run_json(config):
    return json.loads(Path(config.output, "run.json").read_text())


def rows_of(config):
    return read_metrics(Path(config.output, "metrics.csv"))


def dies(monkeypatch, at, above=0.0):
    """Has a run say that it is dead at a step, if its peak rate is above one."""

    def collapse(self, metrics):
        rate = self.optimizer._learning_rate.peak_rate
        dead = int(self.optimizer.iterations) == at and rate > above
        return "so it was made" if dead else ""

    monkeypatch.setattr(MaskedLM, "collapse", collapse)


@pytest.fixture
def masked_lm(config):
    """A run of a system that trains sooner."""
    return dataclasses.replace(config, model="MaskedLM")


def mean_spread(model, inputs):
    """1 minus the mean cosine of two tokens of a text, by NumPy."""
    spreads = []
    states = np.array(model.encoder(inputs))
    for text, mask in zip(states, inputs["padding_mask"], strict=True):
        text = text[mask > 0]
        units = text / np.linalg.norm(text, axis=1, keepdims=True)
        spreads.append(1 - (units @ units.T).mean())
    return np.mean(spreads)


# === What is measured ===


def test_spread_of_a_model(sizes):
    model = Electra(**sizes)
    inputs = make_inputs(batch=4)
    empty = {name: 0 * array[:2] for name, array in inputs.items()}
    filled = {name: np.concatenate([inputs[name], empty[name]]) for name in inputs}
    spreads = TokenSpreads(model)
    found = spreads.measure(Batches([filled].__getitem__, 1))

    assert found == pytest.approx(mean_spread(model, inputs), rel=1e-4)
    kill(model)
    assert spreads.measure(Batches([filled].__getitem__, 1)) < 1e-5


def test_metrics_of_a_run(finished):
    model, config = finished.model, finished.config
    batches = validation_batches(load_dataset_info(config.data), config)
    inputs = {name: np.array(x) for name, x in next(iter(batches)).items()}
    row = read_metrics(finished.directory / "metrics.csv")[-1]
    expected = mean_spread(model, inputs)
    assert row["val_token_spread"] == pytest.approx(expected, rel=1e-3)
    assert row["gradient_norm"] == float(model.optimizer.gradient_norm)


# === What is judged ===


@pytest.mark.parametrize("warmup_steps, first", [(2000, 2010), (5, 1010)])
def test_a_warm_up_is_not_judged(warmup_steps, first, monkeypatch):
    monkeypatch.setattr(collapse, "FIRST_JUDGED", 1000)
    seen = []
    watch = CollapseWatch(
        lambda metrics: seen.append(metrics) or "dead", 10, warmup_steps, "Wait."
    )
    watch.on_interval_end(first - 1, {"val_a": 1.0})
    assert not seen
    with pytest.raises(CollapseError, match=f"{first:,}: dead.*not saved. Wait.$"):
        watch.on_interval_end(first, {"val_a": 1.0, "b": 2.0})
    assert seen == [{"a": 1.0}]


def test_remedies_name_what_can_be_changed(config):
    slow = dataclasses.replace(config, beta_2=0.999, warmup_steps=2000)
    assert "--beta_2 0.98 or a lower --learning_rate than 0.01" in remedy_for(slow)
    assert "--warmup_steps 2,000" in remedy_for(slow)
    assert "Or add --recover" in remedy_for(slow)
    again = remedy_for(dataclasses.replace(slow, recover=True))
    assert "gone back 3 times" in again and "--recover" not in again
    assert "beta_2" not in remedy_for(dataclasses.replace(slow, beta_2=0.95))


def test_phases_are_slowed_too(config):
    phases = Phase("a", 3, learning_rate=0.4), Phase("b", 3)
    slow = slowed(dataclasses.replace(config, phases=phases), 4)
    assert slow.learning_rate == config.learning_rate / 4
    assert [phase.learning_rate for phase in slow.phases] == [0.1, None]


# === What a run does ===


def test_a_run_at_a_huge_rate_is_stopped(config):
    config = dataclasses.replace(config, learning_rate=3.0)
    with pytest.raises(CollapseError, match="dead at step .*AUC 0.5.*--recover"):
        pretrain(config)
    row = rows_of(config)[-1]
    assert row["val_token_spread"] < 0.01 and row["val_rtd_auc"] < 0.52
    saved = [p.name for p in Path(config.output, "checkpoints").glob("*")]
    assert f"step-{row['step']:09d}.npz" not in saved
    assert "recoveries" not in run_json(config)


def test_recovery_from_new_weights_is_a_run_at_half_the_rate(masked_lm, monkeypatch):
    config = dataclasses.replace(masked_lm, recover=True)
    half = dataclasses.replace(
        masked_lm,
        learning_rate=config.learning_rate / 2,
        output=config.output + "_half",
    )
    pretrain(half)
    dies(monkeypatch, at=3, above=half.learning_rate)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        pretrain(config)
    assert "goes back to step 0, with 1/2 of its learning rate" in printed.getvalue()
    assert run_json(config)["recoveries"] == [
        {"dead_at": 3, "why": "so it was made", "back_to": 0}
    ]
    assert_same_weights(Path(config.output), Path(half.output))


def test_a_recovered_run_continues_exactly(masked_lm, monkeypatch):
    config = dataclasses.replace(masked_lm, steps=9)
    dies(monkeypatch, at=6, above=config.learning_rate / 2)
    with pytest.raises(CollapseError, match="dead at step 6"):
        pretrain(config)
    config = dataclasses.replace(config, recover=True)
    pretrain(config)
    rates = {row["step"]: row["learning_rate"] for row in rows_of(config)}
    peak = config.learning_rate
    assert rates == pytest.approx({3: peak * 6 / 9, 6: peak / 2 * 3 / 9, 9: 0})

    other = dataclasses.replace(config, output=config.output + "_stopped")
    judge = MaskedLM.collapse

    def stopped(self, metrics):
        if int(self.optimizer.iterations) == 9:
            raise RuntimeError("killed")
        return judge(self, metrics)

    monkeypatch.setattr(MaskedLM, "collapse", stopped)
    with pytest.raises(RuntimeError, match="killed"):
        pretrain(other)
    monkeypatch.setattr(MaskedLM, "collapse", judge)
    # What it has come back from stays, also where it may not go back again.
    pretrain(dataclasses.replace(other, recover=False))
    assert run_json(other)["recoveries"] == run_json(config)["recoveries"]
    assert run_json(other)["recoveries"][0]["back_to"] == 3
    assert_same_weights(Path(config.output), Path(other.output))


def test_a_run_goes_back_three_times(masked_lm, monkeypatch):
    config = dataclasses.replace(masked_lm, recover=True)
    dies(monkeypatch, at=3)
    with pytest.raises(CollapseError, match="dead at step 3"):
        pretrain(config)
    assert len(run_json(config)["recoveries"]) == 3
    assert len(rows_of(config)) == 1
