"""Checkpoints: how long one takes to write and to read, and how large it is.

    python benchmarks/checkpoint_speed.py

Three ways save and load ELECTRA with its optimizer, in turn: ours, which is exact and
survives a crash while it is written; Keras's `save` and `load_model`; TensorFlow's own.
"""

import dataclasses
import os
import statistics
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf
import tyro

from keras_corrupt.models import Electra
from keras_corrupt.training import AdamW
from keras_corrupt.training.checkpoint import Checkpoints


@dataclasses.dataclass
class Settings:
    """What to measure."""

    preset: str = "small"
    """ELECTRA's size."""
    rounds: int = 5
    """Times of each; the medians count."""


def ours(model, folder):
    checkpoints = Checkpoints(folder)
    return lambda: checkpoints.save(model, 1), lambda: checkpoints.restore(model)


def keras_save(model, folder):
    path = folder / "model.keras"
    return lambda: model.save(path), lambda: keras.models.load_model(path)


def tensorflow(model, folder):
    variables = [v.value for v in (*model.variables, *model.optimizer.variables)]
    checkpoint, path = tf.train.Checkpoint(v=variables), str(folder / "checkpoint")
    return (
        lambda: checkpoint.write(path),
        lambda: checkpoint.read(path).assert_consumed(),
    )


def seconds(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def main(settings):
    model = Electra.from_preset(settings.preset)
    model.compile(AdamW(1e-4, global_clipnorm=1.0))
    model.optimizer.build(model.trainable_variables)
    rng = np.random.default_rng(0)
    for variable in model.optimizer.variables:
        if variable.shape:  # moments as after a step: zeros would be easy to write
            variable.assign(rng.random(variable.shape))
    with tempfile.TemporaryDirectory() as folder:
        kinds = {}
        for kind in (ours, keras_save, tensorflow):
            path = Path(folder) / kind.__name__
            path.mkdir()
            kinds[kind.__name__] = (path, *kind(model, path), [], [])
        for _ in range(settings.rounds):
            for _, write, read, writing, reading in kinds.values():
                writing.append(seconds(write))
                reading.append(seconds(read))
        for name, (path, _, _, writing, reading) in kinds.items():
            size = sum(file.stat().st_size for file in path.iterdir())
            print(
                f"{name}: written in {statistics.median(writing):.2f} s, "
                f"read in {statistics.median(reading):.2f} s, {size / 1e6:.0f} MB"
            )


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__, use_underscores=True))
