"""Prints and draws scores of `cross_view_labels` from several files as one table.

    python -m benchmarks.cross_view_labels chunking ... --seeds 1 --output ONE
    python -m benchmarks.cross_view_labels chunking ... --first_seed 1 --output OTHER
    python -m benchmarks.cross_view_scores ONE/scores.csv OTHER/scores.csv \\
        --plot scores.png

So several machines can share the seeds of a comparison.
"""

import csv
import dataclasses

import tyro

from benchmarks.cross_view_labels import COLUMNS, draw, table


@dataclasses.dataclass(kw_only=True)
class Settings:
    """What to show."""

    scores: tyro.conf.Positional[tuple[str, ...]]
    """Files of scores, of different seeds."""
    metric: str = "f1"
    """What the score is called."""
    plot: str | None = None
    """File for the plot, if any."""


def read(paths):
    """Returns number of labelled examples -> method -> scores, in the seeds' order."""
    counts = {}
    for path in paths:
        with open(path, newline="") as file:
            rows = csv.DictReader(file)
            if tuple(rows.fieldnames or ()) != COLUMNS:
                raise ValueError(f"{path} has not the columns {', '.join(COLUMNS)}.")
            for row in rows:
                methods = counts.setdefault(int(row["labelled"]), {})
                seeds = methods.setdefault(row["method"], {})
                if row["seed"] in seeds:
                    raise ValueError(f"{path}: a score like {row} was there before.")
                seeds[row["seed"]] = float(row["score"])
    for count, methods in counts.items():
        if len({(*sorted(seeds),) for seeds in methods.values()}) != 1:
            raise ValueError(f"With {count} labels, methods have different seeds.")
    if len({(*methods,) for methods in counts.values()}) != 1:
        raise ValueError("Numbers of labels have different methods.")
    return {
        count: {name: [seeds[s] for s in sorted(seeds)] for name, seeds in m.items()}
        for count, m in sorted(counts.items())
    }


def main(settings):
    scores = read(settings.scores)
    print(table(scores, settings.metric))
    if settings.plot:
        draw(scores, {}, settings.metric, settings.plot)


if __name__ == "__main__":
    try:
        main(tyro.cli(Settings, description=__doc__, use_underscores=True))
    except (ValueError, OSError) as error:
        raise SystemExit(f"Error: {error}") from error
