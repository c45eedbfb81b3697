"""Pretrains ELECTRA in float32 and in mixed bfloat16, and compares the losses.

    python -m keras_corrupt.data prepare --corpus CORPUS --output DATA \\
        --sequence_length 64
    python -m benchmarks.precision DATA --output RESULTS

Some seeds each, on the same examples in the same order. Writes a table and a plot: the
means, the difference between runs with the same seed, and how much seeds differ.
"""

import dataclasses
import shutil
import statistics
from pathlib import Path

import tyro

from benchmarks import comparison
from keras_corrupt.training.callbacks import read_metrics

DTYPES = ("float32", "mixed_bfloat16")
METRICS = ("val_mlm_loss", "val_rtd_loss", "val_rtd_auc")


@dataclasses.dataclass
class Settings:
    """What to train."""

    data: tyro.conf.Positional[str]
    """A directory of prepared examples."""
    output: str
    """A new directory for the runs, the table and the plot."""
    preset: str = "tiny"
    """Size of the model."""
    seeds: int = 3
    """Runs in each precision."""
    steps: int = 2000
    """Updates of each run."""
    batch_size: int = 64
    """Sequences in a step."""
    sequence_length: int = 64
    """Tokens in a sequence."""
    learning_rate: float = 2e-3
    """Peak learning rate."""


def run(dtype, seed, settings):
    """Trains once; returns the rows of the metrics."""
    folder = Path(settings.output) / f"{dtype}_{seed}"
    config = comparison.configuration(
        settings,
        folder,
        model="Electra",
        preset=settings.preset,
        batch_size=settings.batch_size,
        steps=settings.steps,
        interval=settings.steps // 10,
        warmup_steps=settings.steps // 10,
        seed=seed,
        dtype=dtype,
    )
    comparison.train(config)
    shutil.copy(folder / "metrics.csv", folder.with_suffix(".csv"))
    return read_metrics(folder / "metrics.csv")


def table(runs):
    """Lines that give each metric's mean and range over the seeds, after training.

    Then the mean difference with the same seed, its standard error, and the standard
    deviation of the first precision's seeds.
    """
    names = [*DTYPES, "difference (standard error)", "deviation of seeds"]
    lines = ["| | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    for metric in METRICS:
        ends = [[rows[-1][metric] for rows in runs[dtype]] for dtype in DTYPES]
        cells = [
            f"{statistics.mean(values):.4f} ({min(values):.4f} to {max(values):.4f})"
            for values in ends
        ]
        if len(ends[0]) > 1:
            differences = [b - a for a, b in zip(*ends, strict=True)]
            error = statistics.stdev(differences) / len(differences) ** 0.5
            cells.append(f"{statistics.mean(differences):+.4f} ({error:.4f})")
            cells.append(f"{statistics.stdev(ends[0]):.4f}")
        else:
            cells += ["", ""]
        lines.append(f"| {metric} | " + " | ".join(cells) + " |")
    return lines


def draw(runs, path):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4), layout="constrained")
    for axis, metric in zip(figure.subplots(1, 3), METRICS, strict=True):
        for dtype, color in zip(DTYPES, ("C0", "C1"), strict=True):
            for i, rows in enumerate(runs[dtype]):
                x, y = ([row[name] for row in rows] for name in ("step", metric))
                axis.plot(x, y, color=color, alpha=0.6, label=None if i else dtype)
        axis.set(title=metric, xlabel="step")
        axis.grid(alpha=0.3)
        axis.legend()
    figure.savefig(path, dpi=110)


def main(settings):
    runs = {dtype: [] for dtype in DTYPES}
    for seed in range(settings.seeds):
        for dtype in DTYPES:
            runs[dtype].append(run(dtype, seed, settings))
    lines = table(runs)
    output = Path(settings.output)
    (output / "precision.md").write_text("\n".join(lines) + "\n")
    draw(runs, output / "precision.png")
    print("\n" + "\n".join(lines))


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__, use_underscores=True))
