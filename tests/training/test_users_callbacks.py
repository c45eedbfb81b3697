"""Keras callbacks that a user gives to `pretrain`."""

from pathlib import Path

import keras
import pytest

from keras_corrupt.training import pretrain
from keras_corrupt.training.callbacks import read_metrics
from tests.training.conftest import assert_same_weights

pytestmark = pytest.mark.usefixtures("presets")


class StopsAfter(keras.callbacks.Callback):
    """Sees each interval, as a user's callback does, and stops the run after one."""

    def __init__(self, stop):
        super().__init__()
        self.stop, self.losses = stop, []

    def on_epoch_end(self, epoch, logs=None):
        self.losses.append((logs["loss"], logs["val_loss"]))
        self.model.stop_training = len(self.losses) == self.stop


def test_a_callback_follows_a_run_and_stops_it(config, finished):
    first, second = StopsAfter(1), StopsAfter(None)
    assert pretrain(config, callbacks=[first]) is None
    assert pretrain(config, callbacks=[second]) is not None
    assert_same_weights(Path(config.output), finished.directory)
    rows = read_metrics(finished.directory / "metrics.csv")
    seen = [(row["loss"], row["val_loss"]) for row in rows]
    assert first.losses + second.losses == seen
