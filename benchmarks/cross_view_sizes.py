"""Draws scores over the size of the LSTMs (Clark's thesis, figure 4.5, below).

    python -m benchmarks.cross_view_labels chunking ... --options lstm_size 64 \\
        --output size-64
    python -m benchmarks.cross_view_labels chunking ... --options lstm_size 256 \\
        --output size-256
    python -m benchmarks.cross_view_sizes 64 size-64 256 size-256 --output RESULTS

Each directory is a comparison's, with one number of labels, all with the same methods.
"""

import csv
import dataclasses
from pathlib import Path

import numpy as np
import tyro

from benchmarks.comparison import with_error, write_rows


@dataclasses.dataclass(kw_only=True)
class Settings:
    """What to draw."""

    comparisons: tyro.conf.Positional[tuple[tuple[int, str], ...]]
    """Hidden units, and the directory of a comparison with LSTMs of that size."""
    output: str
    """Directory for the scores, the table and the plot."""
    metric: str = "f1"
    """What the score is called."""


def main(settings):
    rows, scores = [], {}
    for size, directory in settings.comparisons:
        with open(Path(directory, "scores.csv"), newline="") as file:
            added = [{"size": size, **row} for row in csv.DictReader(file)]
        if len({row["labelled"] for row in added}) != 1:
            raise ValueError(f"{directory} has scores of several numbers of labels.")
        rows += added
        for row in added:
            of_size = scores.setdefault(row["method"], {}).setdefault(size, [])
            of_size.append(float(row["score"]))
    if len({(*by_size,) for by_size in scores.values()}) != 1:
        raise ValueError(f"The comparisons differ in methods: {', '.join(scores)}.")
    write_rows(rows, Path(settings.output, "sizes.csv"))
    draw(scores, settings.metric, Path(settings.output, "sizes.png"))
    print(table(scores))


def table(scores):
    """Returns the table, in Markdown.

    Args:
        scores: Method -> hidden units -> scores of the seeds.

    >>> print(table({"supervised": {64: [1.0]}, "CVT": {64: [3.0, 5.0]}}))
    | hidden units | supervised | CVT |
    |---:|---:|---:|
    | 64 | 1.0 | 4.0 ± 1.0 |
    """
    lines = [
        f"| hidden units | {' | '.join(scores)} |",
        "|---:" * (len(scores) + 1) + "|",
    ]
    for size in next(iter(scores.values())):
        cells = [with_error(np.array(of_size[size]), 1) for of_size in scores.values()]
        lines.append(f"| {size} | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(scores, metric, path):
    """Draws means over hidden units; `scores` are as `table` has them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 4), layout="constrained")
    axis = figure.subplots()
    for method, of_size in scores.items():
        axis.plot(
            [*of_size], [np.mean(v) for v in of_size.values()], "o-", label=method
        )
    axis.set(xlabel="hidden units of the first LSTM", ylabel=metric, xscale="log")
    axis.set_xticks([*of_size], [str(size) for size in of_size])
    axis.minorticks_off()
    axis.grid(alpha=0.3)
    axis.legend()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    try:
        main(tyro.cli(Settings, description=__doc__, use_underscores=True))
    except (ValueError, OSError) as error:
        raise SystemExit(f"Error: {error}") from error
