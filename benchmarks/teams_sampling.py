"""Measures the drawing of TEAMS's candidates against Model Garden's way of it.

    pip install 'tf-models-official==2.20.*' 'tensorflow==2.20.*'
    python benchmarks/teams_sampling.py

Theirs takes the maximum K times, and subtracts a one-hot of it from all logits after
each; or, as an option, the K largest at once.
"""

import dataclasses
import functools
import statistics
import time

import keras
import tensorflow as tf
import tyro
from official.projects.teams.teams_pretrainer import sample_k_from_softmax

from keras_corrupt.corruption import sample_negatives
from keras_corrupt.cpu_kernels import all_replacements
from keras_corrupt.devices.guests import replaced


@dataclasses.dataclass
class Settings:
    """What to measure."""

    batch_size: int = 32
    """Sequences."""
    masked: int = 20
    """Masked positions in each."""
    vocabulary_size: int = 30522
    """Tokens."""
    num_negatives: int = 5
    """Draws at each position."""
    rounds: int = 15
    """Times that each is run, in turn; the median counts."""


def main():
    settings = tyro.cli(Settings, description=__doc__, use_underscores=True)
    k, size = settings.num_negatives, settings.vocabulary_size
    logits = tf.random.normal((settings.batch_size, settings.masked, size))
    targets = tf.random.uniform(logits.shape[:2], 0, size, tf.int32)
    seed = keras.random.SeedGenerator(0)

    def theirs(use_topk):
        disallow = tf.one_hot(targets, size)
        return sample_k_from_softmax(logits, k, disallow, use_topk)

    def ours():
        with replaced(all_replacements()):
            return sample_negatives(logits, targets, k, seed)

    candidates = {
        "ours": ours,
        "theirs": functools.partial(theirs, False),
        "theirs, use_topk": functools.partial(theirs, True),
    }
    compiled = {name: tf.function(draw) for name, draw in candidates.items()}
    seconds = {name: [] for name in compiled}
    for _ in range(settings.rounds + 1):
        for name, draw in compiled.items():
            start = time.perf_counter()
            draw().numpy()
            seconds[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(s[1:]) for name, s in seconds.items()}
    for name, median in medians.items():
        ratio = median / medians["ours"]
        print(f"{name:18}{1000 * median:8.0f} ms {ratio:6.2f} times ours")


if __name__ == "__main__":
    main()
