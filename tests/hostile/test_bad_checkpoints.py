"""A damaged checkpoint is passed over for the one before, with a line that says so."""

import shutil

import pytest

from keras_corrupt.models import Electra
from keras_corrupt.training import AdamW, CheckpointError, Checkpoints
from tests.conftest import SIZES
from tests.hostile.checkpoint_cases import CASES


@pytest.fixture(scope="module")
def model():
    model = Electra(**SIZES)
    model.compile(AdamW(1e-3), jit_compile=False)
    model.optimizer.build(model.trainable_variables)
    return model


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    checkpoints = Checkpoints(tmp_path_factory.mktemp("run") / "saved")
    checkpoints.save(model, 1)
    checkpoints.save(model, 2)
    return checkpoints


@pytest.fixture
def checkpoints(saved, tmp_path):
    shutil.copytree(saved.directory, tmp_path / "checkpoints")
    return Checkpoints(tmp_path / "checkpoints")


@pytest.mark.parametrize("case", CASES)
def test_a_damaged_checkpoint_is_passed_over(case, model, checkpoints, capsys):
    CASES[case](checkpoints.path(2))
    assert checkpoints.restore(model) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(f"Passing over {checkpoints.path(2)}: "), line
    checkpoints.path(1).write_bytes(b"")
    with pytest.raises(CheckpointError, match="step-000000002.*\n.*step-000000001"):
        checkpoints.restore(model)


def test_a_name_that_tells_another_step_is_not_believed(model, checkpoints, capsys):
    shutil.copy(checkpoints.path(2), checkpoints.path(999))
    assert checkpoints.restore(model) == 2
    assert "step-000000999.npz: it is the one of step 2" in capsys.readouterr().out
    # Nor does it take the place of one that is kept.
    latest = Checkpoints(checkpoints.directory, keep=1)
    latest.save(model, 3)
    assert latest.steps() == [3, 999]
    assert latest.restore(model) == 3


def test_a_sound_checkpoint_of_another_model_is_no_damage(model, checkpoints):
    other = Electra(**{**SIZES, "generator": {**SIZES["generator"], "hidden_size": 4}})
    other.compile(AdamW(1e-3), jit_compile=False)
    other.optimizer.build(other.trainable_variables)
    checkpoints.save(other, 3)
    with pytest.raises(CheckpointError, match="step-000000003.*another model"):
        checkpoints.restore(model)


def test_goes_on_with_the_examples_that_it_was_trained_on(model, tmp_path):
    Checkpoints(tmp_path, data="a").save(model, 1)
    assert Checkpoints(tmp_path, data="a").restore(model) == 1
    assert Checkpoints(tmp_path).restore(model) == 1
    with pytest.raises(CheckpointError, match="examples are not those.*trained on"):
        Checkpoints(tmp_path, data="b").restore(model)
    Checkpoints(tmp_path).save(model, 2)
    assert Checkpoints(tmp_path, data="b").restore(model) == 2


def test_what_a_kill_left_goes_with_the_next_one(model, checkpoints):
    left = checkpoints.directory / ".step-000000001.npz.partial"
    left.write_bytes(b"half of it")
    checkpoints.save(model, 3)
    assert not left.exists()
