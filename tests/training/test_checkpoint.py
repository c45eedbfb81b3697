import pickle

import keras
import numpy as np
import pytest

from keras_corrupt.models import Electra
from keras_corrupt.training import AdamW, CheckpointError, Checkpoints

pytestmark = pytest.mark.usefixtures("eager")


@pytest.fixture
def model(sizes):
    return compiled(sizes)


def compiled(sizes, **options):
    model = Electra(**sizes)
    model.compile(optimizer=AdamW(1e-3, **options), jit_compile=False)
    model.optimizer.build(model.trainable_variables)
    return model


def everything(model):
    variables = *model.variables, *model.optimizer.variables
    return [np.array(variable) for variable in variables]


def assert_same(a, b):
    for x, y in zip(a, b, strict=True):
        np.testing.assert_array_equal(x, y)


def test_restores_everything_training_changes(tmp_path, sizes, inputs):
    model = compiled(sizes, use_ema=True, gradient_accumulation_steps=2)
    model.fit(inputs, batch_size=3, epochs=2, verbose=0, shuffle=False)
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(model, 4)
    saved = everything(model)
    assert any("seed" in v.path for v in model.variables)
    model.fit(inputs, batch_size=3, epochs=1, verbose=0, shuffle=False)
    after = everything(model)

    keras.utils.set_random_seed(99)
    other = compiled(sizes, use_ema=True, gradient_accumulation_steps=2)
    assert checkpoints.restore(other) == 4
    assert_same(everything(other), saved)
    other.fit(inputs, batch_size=3, epochs=1, verbose=0, shuffle=False)
    assert_same(everything(other), after)


def test_keeps_the_latest(tmp_path, model):
    checkpoints = Checkpoints(tmp_path, keep=2)
    assert checkpoints.restore(model) == 0
    for step in (5, 10, 15):
        checkpoints.save(model, step)
    assert checkpoints.steps() == [10, 15]
    assert len(list(tmp_path.iterdir())) == 2


def test_falls_back_when_the_latest_is_damaged(tmp_path, model):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(model, 1)
    checkpoints.save(model, 2)
    path = checkpoints.path(2)
    path.write_bytes(path.read_bytes()[:-2000])
    assert checkpoints.restore(model) == 1
    checkpoints.path(1).write_bytes(b"")
    with pytest.raises(CheckpointError, match="step-000000002"):
        checkpoints.restore(model)


def test_full_disk_leaves_the_last_one(tmp_path, model, monkeypatch):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(model, 1)

    def full(file, **arrays):
        file.write(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(CheckpointError, match="No space left.*command again.*000001"):
        checkpoints.save(model, 2)
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000001.npz"]


def test_another_model_is_refused(tmp_path, model, sizes):
    Checkpoints(tmp_path).save(model, 1)
    sizes["discriminator"] |= {"num_layers": 2}
    with pytest.raises(CheckpointError, match="another model"):
        Checkpoints(tmp_path).restore(compiled(sizes))


def test_a_hostile_checkpoint_executes_nothing(tmp_path, model):
    import os

    marker = tmp_path / "executed"

    class Hostile:
        def __reduce__(self):
            return os.mkdir, (str(marker),)

    checkpoints = Checkpoints(tmp_path / "c")
    checkpoints.save(model, 1)
    array = np.array([Hostile()], dtype=object)
    with open(checkpoints.path(1), "wb") as file:
        np.savez(file, description=array, **{"model/seed_generator": array})
    with pytest.raises(CheckpointError):
        checkpoints.restore(model)
    checkpoints.path(1).write_bytes(pickle.dumps(Hostile()))
    with pytest.raises(CheckpointError):
        checkpoints.restore(model)
    assert not marker.exists()
