"""How the cost of a pretraining step grows: length, batch, size of the model.

    pip install -e '.[benchmark]'
    python -m benchmarks.growth --output RESULTS

Each point is ELECTRA in a process of its own, through `fit`: the median time of a
step, the peak memory, and the estimate of it in a run's banner. Writes a table and a
plot.
"""

import dataclasses
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Literal

import tyro

from benchmarks.machine import description

ROOT = Path(__file__).parents[1]
SERIES = {
    "length": [("small", 32, length) for length in (128, 256, 512)],
    "batch": [("small", batch, 128) for batch in (8, 32, 128, 256)],
    "size": [(size, 8, 128) for size in ("tiny", "small", "base")],
    "modern": [("modern_small", 2, length) for length in (512, 1024, 2048)],
}
COLUMN = {"length": 2, "batch": 1, "size": 0, "modern": 2}
TITLES = {
    "length": "small, batch 32",
    "batch": "small, length 128",
    "size": "batch 8, length 128",
    "modern": "modern_small, batch 2",
}
X_LABELS = {"batch": "batch", "size": "parameters"}


@dataclasses.dataclass
class Settings:
    """What to measure."""

    output: str
    """Directory for table and plot."""
    steps: int = 5
    """Steps of each point; the median counts."""
    dtype: str = "mixed_bfloat16"
    """Or `float32`."""
    series: tuple[Literal["length", "batch", "size", "modern"], ...] = tuple(SERIES)
    """What grows; `modern` is the length, with ModernBERT's parts."""


def measure(size, batch_size, length, dtype, steps):
    """Prints seconds, peak bytes, estimated bytes and parameters as JSON."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import keras
    import tensorflow as tf

    from benchmarks.peers import VOCABULARY, random_batch, steps_of_fit
    from keras_corrupt.models import Electra
    from keras_corrupt.training import AdamW
    from keras_corrupt.training.memory import process_bytes, training_bytes

    keras.utils.set_random_seed(0)
    sizes = {"vocabulary_size": VOCABULARY, "max_length": max(512, int(length))}
    model = Electra.from_preset(size, dtype=dtype, discriminator=sizes)
    estimate = process_bytes()
    estimate += sum(training_bytes(model, int(batch_size), int(length)))
    model.compile(AdamW(5e-4, global_clipnorm=1.0), jit_compile=False)
    ids = random_batch(int(batch_size), int(length))
    batch = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
    step = steps_of_fit(model, tf.data.Dataset.from_tensors(batch).repeat())
    step()
    seconds = []
    for _ in range(int(steps)):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    result = {
        "seconds": statistics.median(seconds),
        "peak": process_bytes(),
        "estimate": estimate,
        "parameters": model.count_params(),
    }
    print(json.dumps(result), file=answers, flush=True)


def main(settings):
    output = Path(settings.output)
    output.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    points = {}
    chosen = (SERIES[name] for name in settings.series)
    for point in dict.fromkeys(itertools.chain(*chosen)):
        arguments = [*map(str, point), settings.dtype, str(settings.steps)]
        finished = subprocess.run(
            [sys.executable, "-m", "benchmarks.growth", "measure", *arguments],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
        )
        if finished.returncode:
            print(f"{point}: {finished.stderr.strip().splitlines()[-1:]}")
            continue
        points[point] = json.loads(finished.stdout)
        print(point, points[point], flush=True)
    write(output, points, settings)


def write(output, points, settings):
    lines = [
        f"ELECTRA, {settings.dtype}; {description()}\n",
        "| model | batch | length | ms | ms a 1,000 tokens | peak memory | estimated |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for (size, batch_size, length), point in points.items():
        ms = 1000 * point["seconds"]
        error = point["estimate"] / point["peak"] - 1
        lines.append(
            f"| {size} | {batch_size} | {length} | {ms:,.0f} | "
            f"{1000 * ms / batch_size / length:,.0f} | {point['peak'] / 1e9:.2f} GB | "
            f"{point['estimate'] / 1e9:.2f} GB ({error:+.0%}) |"
        )
    (output / "growth.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    draw(output, points, settings.series)


def draw(output, points, names):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4 * len(names), 7), layout="constrained")
    axes = figure.subplots(2, len(names), sharey="row", squeeze=False)
    for name, (above, below) in zip(names, axes.T, strict=True):
        series = [point for point in SERIES[name] if point in points]
        x = [point[COLUMN[name]] for point in series]
        if name == "size":
            x = [points[point]["parameters"] for point in series]
        measured = [points[point] for point in series]
        above.plot(x, [f["seconds"] for f in measured], "o-")
        below.plot(x, [f["peak"] / 1e9 for f in measured], "o-", label="measured")
        below.plot(x, [f["estimate"] / 1e9 for f in measured], "x--", label="estimated")
        above.set(yscale="log")
        above.yaxis.set_major_formatter("{x:g}")
        above.set_title(TITLES[name])
        below.set_xlabel(X_LABELS.get(name, "length"))
        for panel in (above, below):
            panel.set(xscale="log")
            panel.set_xticks(x, labels=[label(n) for n in x])
            panel.set_xticks([], minor=True)
            panel.grid(alpha=0.3)
    axes[0, 0].set_ylabel("seconds a step")
    axes[1, 0].set_ylabel("peak memory, GB")
    axes[1, 0].legend()
    figure.savefig(output / "growth.png", dpi=120)


def label(n):
    return f"{n / 1e6:.0f} million" if n >= 1e6 else str(n)


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        measure(*sys.argv[2:])
    else:
        main(tyro.cli(Settings, description=__doc__, use_underscores=True))
