"""Keras callbacks that a user gives to `pretrain`."""

import os
import signal
from pathlib import Path

import keras
import pytest

from keras_corrupt.training import pretrain
from keras_corrupt.training.callbacks import read_metrics
from tests.training.conftest import assert_same_weights

pytestmark = pytest.mark.usefixtures("presets")


class StopsAfter(keras.callbacks.Callback):
    """Sees each interval, as a user's callback does, and stops the run after one."""

    def __init__(self, stop, first=0):
        super().__init__()
        self.stop, self.first, self.losses = stop, first, []

    def on_epoch_end(self, epoch, logs=None):
        assert epoch == self.first + len(self.losses)
        self.losses.append((logs["loss"], logs["val_loss"]))
        self.model.stop_training = len(self.losses) == self.stop


class CtrlC(StopsAfter):
    """Stops the run within the second interval."""

    def on_train_batch_end(self, batch, logs=None):
        if self.losses and batch == 0:
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("first", [StopsAfter(1), CtrlC(None)])
def test_callbacks_follow_a_run_and_stop_it(config, finished, first):
    second = StopsAfter(None, first=1)
    assert pretrain(config, callbacks=[first]) is None
    assert pretrain(config, callbacks=[second]) is not None
    assert_same_weights(Path(config.output), finished.directory)
    seen = first.losses + second.losses
    rows, whole = (
        read_metrics(Path(directory) / "metrics.csv")
        for directory in (config.output, finished.directory)
    )
    assert seen == [(row["loss"], row["val_loss"]) for row in rows]
    # A loss is of the updates since the run went on.
    values = [(row["loss"], row["val_loss"]) for row in whole]
    if isinstance(first, CtrlC):
        seen, values = ([val for _, val in pairs] for pairs in (seen, values))
    assert seen == values
