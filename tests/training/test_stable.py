"""A constant rate with a decay at the end, from which other runs can go on."""

import dataclasses
import shutil

import numpy as np
import pytest

from keras_corrupt.models import MaskedLM
from keras_corrupt.presets.named_variables import named_variables
from keras_corrupt.training import (
    Checkpoints,
    PretrainConfig,
    WarmupStableDecay,
    pretrain,
)
from keras_corrupt.training.callbacks import read_metrics
from tests.training.conftest import assert_same_weights, contents

pytestmark = pytest.mark.usefixtures("presets")


def test_the_rate_is_warm_up_stable_decay():
    schedule = WarmupStableDecay(
        2.0, total_steps=1000, warmup_steps=100, decay_steps=160
    )
    steps = np.array([0, 50, 100, 500, 840, 850, 880, 960, 1000, 1100])
    decay = np.sqrt(np.clip(steps - 840, 0, 160) / 160)
    expected = 2 * np.minimum(1, steps / 100) * (1 - decay)
    made = [float(schedule(step)) for step in steps]
    np.testing.assert_allclose(made, expected, rtol=1e-6)
    assert expected[[3, 5, 6]].tolist() == [2, 1.5, 1]
    assert float(WarmupStableDecay(1.0, 10, 0, 5)(0)) == 1
    again = WarmupStableDecay.from_config(schedule.get_config())
    assert [float(again(step)) for step in steps] == made
    for warmup, decay in ((-1, 5), (6, 5), (0, 0), (0, 11)):
        with pytest.raises(ValueError, match="both `total_steps` together at most"):
            WarmupStableDecay(1.0, 10, warmup, decay)


@pytest.fixture(scope="module")
def config(recipe):
    return dataclasses.replace(
        recipe, model="MaskedLM", objective={}, schedule="stable", interval=1
    )


def run(config, output, **changes):
    config = dataclasses.replace(config, output=str(output), **changes)
    return pretrain(config), output


@pytest.fixture(scope="module")
def short(config, tmp_path_factory, presets):
    """Six steps, the last two of which decay."""
    output = tmp_path_factory.mktemp("stable") / "short"
    return run(config, output, steps=6, decay_steps=2)[1]


def test_the_state_before_the_decay_is_kept(short):
    checkpoints = Checkpoints(short / "checkpoints")
    assert checkpoints.steps() == [4, 5, 6]
    rates = [row["learning_rate"] for row in read_metrics(short / "metrics.csv")]
    expected = 0.01 * np.array([1, 1, 1, 1, 1 - np.sqrt(0.5), 0])
    np.testing.assert_allclose(rates, expected, rtol=1e-5, atol=1e-9)
    assert [path.name for path in (short / "presets").iterdir()] == ["step-000000004"]
    kept = MaskedLM.from_preset(short / "presets" / "step-000000004")
    with np.load(checkpoints.path(4)) as state:
        for name, variable in named_variables(kept).items():
            if "seed" not in name:
                np.testing.assert_array_equal(state[f"model/{name}"], variable)


def test_a_longer_run_goes_on_from_it_exactly(config, short, tmp_path):
    longer = {"steps": 9, "decay_steps": 3}
    _, whole = run(config, tmp_path / "whole", **longer)
    before = contents(short)
    _, resumed = run(config, tmp_path / "resumed", resume_from=str(short), **longer)
    assert_same_weights(whole, resumed)
    assert contents(short) == before
    rows = read_metrics(resumed / "metrics.csv")
    assert [row["step"] for row in rows] == [5, 6, 7, 8, 9]
    theirs = {
        row["step"]: row["val_loss"] for row in read_metrics(whole / "metrics.csv")
    }
    assert [row["val_loss"] for row in rows] == [theirs[n] for n in range(5, 10)]


def test_a_decay_begins_anew_on_other_text(config, short, tmp_path):
    # The same examples in another order are others.
    changes = {"steps": 6, "decay_steps": 2, "seed": 1, "resume_from": str(short)}
    model, output = run(config, tmp_path / "other", **changes)
    first = Checkpoints(output / "checkpoints")
    assert first.steps() == [4, 5, 6]
    with (
        np.load(first.path(4)) as state,
        np.load(Checkpoints(short / "checkpoints").path(4)) as theirs,
    ):
        for name in set(theirs.files) - {"description"}:
            np.testing.assert_array_equal(state[name], theirs[name], name)
    with (
        np.load(first.path(6)) as state,
        np.load(Checkpoints(short / "checkpoints").path(6)) as theirs,
    ):
        name = "model/network/encoder/embeddings/token/embeddings"
        assert np.abs(state[name] - theirs[name]).max() > 0
    # It is a run of its own: it is continued without the other one.
    shutil.rmtree(output / "preset")
    moved = short.rename(short.with_name("moved"))
    try:
        run(config, output, **changes)
    finally:
        moved.rename(short)
    assert (output / "preset").is_dir()


def test_what_cannot_be_is_refused_before_anything_is_written(config, short, tmp_path):
    linear = dataclasses.replace(config, schedule="linear")
    with pytest.raises(ValueError, match="--decay_steps 2 needs --schedule stable"):
        run(linear, tmp_path / "run", decay_steps=2)
    for changes, reason in (
        ({"warmup_steps": 3, "decay_steps": 4}, "--warmup_steps 3 and a decay of 4"),
        ({"decay_steps": 0}, "--decay_steps 0 must be at least 1"),
        ({"generator_steps": 2}, "cannot be used in a run of several phases"),
        ({"resume_from": str(tmp_path)}, "is no directory of a run with"),
        ({"resume_from": str(short), "steps": 5}, "has done 4 steps .* this run has"),
        (
            {"resume_from": str(short), "data": None, "corpus": ("python-docs",)},
            "vocab",
        ),
    ):
        with pytest.raises(ValueError, match=reason):
            run(config, tmp_path / "run", **{"decay_steps": 2} | changes)
    assert not (tmp_path / "run").exists()
    with pytest.raises(ValueError, match="new run with --resume_from"):
        run(config, short, steps=9, decay_steps=2)


def test_the_last_tenth_decays_by_default():
    config = PretrainConfig("MaskedLM", "tiny", "run", steps=200, schedule="stable")
    from keras_corrupt.training.stable import last_stable_step

    assert last_stable_step(config) == 180
    assert last_stable_step(dataclasses.replace(config, schedule="linear")) is None
