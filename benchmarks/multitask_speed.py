"""What one model of several tasks costs beside a model of each: speed and memory.

    python -m benchmarks.multitask_speed GLUE_DIR --preset PRESET

Trains on the same sequences each way, in a process of its own, through `fit`: a model
of each task, one after another; one of all; and one in which each head reads the
rows of its task alone (TensorFlow without XLA). Prints the median of sequences a second
and the most memory that the process took.
"""

import dataclasses
import resource
import statistics
import subprocess
import sys
import time
from typing import Literal

import tyro

from keras_corrupt.models.fine_tuning import settings as settings_of
from keras_corrupt.multitask import MultiTaskModel
from keras_corrupt.tasks.glue import GlueTask

WAYS = ("single", "multi", "multi_heads_needed")


@dataclasses.dataclass
class Settings:
    """What to measure."""

    data: tyro.conf.Positional[str]
    """A directory in GLUE's layout."""
    preset: str = "tiny_en"
    """A pretrained model."""
    tasks: tuple[str, ...] = ("RTE", "MRPC", "CoLA", "STS-B", "SST-2")
    """Which tasks."""
    examples: int = 256
    """Training examples of each."""
    batch_size: int = 32
    """Sequences in a batch."""
    max_length: int = 128
    """The longest sequence."""
    rounds: int = 3
    """Passes timed."""
    way: Literal["all", "single", "multi", "multi_heads_needed"] = "all"
    """Which way; each has its process."""


def measure(settings):
    """Prints the line of one way."""
    from keras_corrupt.downstream.optimizer import compiled

    tasks = {name: GlueTask(name, settings.data) for name in settings.tasks}
    groups = [tasks] if settings.way != "single" else [{n: tasks[n]} for n in tasks]
    seconds = [0.0] * settings.rounds
    for group in groups:
        model = MultiTaskModel.from_preset(
            settings.preset,
            max_length=settings.max_length,
            all_heads=settings.way != "multi_heads_needed",
            tasks={
                name: {"class": "TextClassifier", **task.model_arguments}
                for name, task in group.items()
            },
        )
        compiled(model, settings_of("tiny", ""), 1000)
        train = {n: t.splits["train"].take(settings.examples) for n, t in group.items()}
        features = model.features(
            {name: split.examples for name, split in train.items()},
            {name: split.labels for name, split in train.items()},
        )
        # With exponent 1 all ways read as many of each task.
        batches = model.batches(features, settings.batch_size, exponent=1.0)
        model.fit(batches, verbose=0, shuffle=False)  # compiles
        for i in range(settings.rounds):
            start = time.perf_counter()
            model.fit(batches, verbose=0, shuffle=False)
            seconds[i] += time.perf_counter() - start
    speed = settings.examples * len(tasks) / statistics.median(seconds)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    models = len(groups)
    print(f"| {settings.way} | {models} | {speed:.0f} | {memory:.2f} |", flush=True)


def main(settings):
    if settings.way != "all":
        return measure(settings)
    print("| way | models | sequences/s | GiB |\n|---|---:|---:|---:|", flush=True)
    for way in WAYS:
        subprocess.run([sys.executable, *sys.argv, "--way", way], check=True)


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__, use_underscores=True))
