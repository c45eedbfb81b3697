"""How the time of preparation grows with the longest line and the longest word.

    pip install -e '.[benchmark]'
    python -m benchmarks.preparation_growth --output RESULTS

A document of one line (a `.jsonl` without line breaks) is built into examples, and a
vocabulary is trained on a text that has one long word. Both are to grow with the size,
not with its square. Writes a table and a plot.
"""

import dataclasses
import random
import statistics
import string
import time
from pathlib import Path

import tyro

from benchmarks.machine import description
from keras_corrupt.data import build_examples
from keras_corrupt.tokenizers import KINDS

TOKENS = (50_000, 200_000, 800_000, 3_200_000)
LETTERS = (5_000, 20_000, 80_000, 320_000)


@dataclasses.dataclass
class Settings:
    """What to measure."""

    output: str
    """Directory for table and plot."""
    rounds: int = 3
    """Measurements of each size; the median counts."""
    vocabulary_size: int = 2000
    """Tokens of the vocabularies."""


def line_of(tokens):
    """Builds the examples of a document of one line."""
    options = dict(max_length=128, classify_id=2, separate_id=3)
    sentence = list(range(tokens))
    for _ in build_examples([sentence], **options, rng=random.Random(0)):
        pass


def word_of(letters, kind, vocabulary_size):
    """Trains a vocabulary on a text with one long word."""
    word = "".join(random.Random(0).choices(string.ascii_lowercase, k=letters))
    KINDS[kind].train(["the cat sat on the mat", word], vocabulary_size)


def seconds(work, *arguments, rounds):
    times = []
    for _ in range(rounds):
        start = time.process_time()
        work(*arguments)
        times.append(time.process_time() - start)
    return statistics.median(times)


def main(settings):
    output = Path(settings.output)
    output.mkdir(parents=True, exist_ok=True)
    rounds = settings.rounds
    series = {
        "examples of one line": {
            size: seconds(line_of, size, rounds=rounds) for size in TOKENS
        }
    }
    for kind in KINDS:
        arguments = kind, settings.vocabulary_size
        series[f"{kind} vocabulary, one word"] = {
            size: seconds(word_of, size, *arguments, rounds=rounds) for size in LETTERS
        }
    write(output, series)
    draw(output, series)


def write(output, series):
    lines = [
        f"Seconds of processor time; {description()}\n",
        "| | size | seconds | a million |",
        "|---|---:|---:|---:|",
    ]
    for name, points in series.items():
        for size, seconds in points.items():
            each = 1e6 * seconds / size
            lines.append(f"| {name} | {size:,} | {seconds:.2f} | {each:.1f} |")
    (output / "preparation_growth.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def draw(output, series):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 5), layout="constrained")
    axes = figure.subplots()
    for name, points in series.items():
        axes.plot(points.keys(), points.values(), "o-", label=name)
    axes.set(xscale="log", yscale="log", xlabel="tokens, letters", ylabel="seconds")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(output / "preparation_growth.png", dpi=120)


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__, use_underscores=True))
