"""`--fill_rows`: a run whose sequences hold several examples."""

import dataclasses

import numpy as np
import pytest

from keras_corrupt.data.pipeline import make_dataset
from keras_corrupt.models import Electra
from keras_corrupt.training import Checkpoints, pretrain

pytestmark = pytest.mark.usefixtures("presets")


class Killed(BaseException):
    """Ends a run as SIGKILL would."""


def test_a_run_on_filled_rows_goes_on_exactly(config, tmp_path, monkeypatch):
    seen, fit = [], Electra.fit

    def spied(self, batches, *args, **kwargs):
        first = next(iter(batches))
        seen.append({name: np.array(array) for name, array in first.items()})
        return fit(self, batches, *args, **kwargs)

    monkeypatch.setattr(Electra, "fit", spied)
    config = dataclasses.replace(
        config,
        fill_rows=True,
        sequence_length=80,
        accumulate=2,
        steps=4,
        interval=2,
        objective={"discriminator": {"max_length": 80}},
    )
    model = pretrain(dataclasses.replace(config, output=str(tmp_path / "whole")))
    save = Checkpoints.save

    def save_and_die(self, model, step, phase):
        save(self, model, step, phase)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "save", save_and_die)
        with pytest.raises(Killed):
            pretrain(config)
    other = pretrain(config)
    for a, b in zip(model.weights, other.weights, strict=True):
        np.testing.assert_array_equal(np.array(a), np.array(b))
    rows = make_dataset(
        config.data,
        batch_size=16,
        max_length=80,
        seed=config.seed,
        start_step=2,
        fill_rows=True,
    )
    assert seen[-1]["text_ids"].max() > 1
    for name, array in rows[0].items():
        np.testing.assert_array_equal(seen[-1][name], array)
    with pytest.raises(ValueError, match="fill_rows: was True, asked None"):
        pretrain(dataclasses.replace(config, fill_rows=False))
