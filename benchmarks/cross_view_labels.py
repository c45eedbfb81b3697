"""Trains taggers and parsers with few labels: supervised, and by Cross-View Training.

    python -m benchmarks.cross_view_labels chunking --train conll2000/train.txt \\
        --dev conll2000/dev.txt --unlabelled wiki.txt --output RESULTS

Both learn from the same first sentences of the training file, in as many updates, of
which in Cross-View Training every second one is unlabelled (Clark's thesis, figure
4.5). What counts is the last average of the weights, on the sentences to evaluate on.
Called again, it goes on where it was stopped.
"""

import csv
import dataclasses
import json
from pathlib import Path
from typing import Literal

import numpy as np
import tyro

from benchmarks.comparison import with_error
from keras_corrupt.semi_supervised import CrossViewConfig, ParsingConfig, train
from keras_corrupt.tasks.conll import TaggingTask
from keras_corrupt.tasks.dependencies import DependencyTask
from keras_corrupt.training.callbacks import read_metrics

#: Task -> how its sentences are read.
TASKS = {
    "chunking": lambda files: TaggingTask("chunking", files, scheme="bioes"),
    "entities": lambda files: TaggingTask("entities", files, scheme="bioes"),
    "pos": lambda files: TaggingTask("pos", files, tag_column=3, scheme="plain"),
    "parsing": lambda files: DependencyTask("parsing", files),
}
COLUMNS = ("sentences", "method", "seed", "score")


@dataclasses.dataclass
class Settings:
    """What to train."""

    task: tyro.conf.Positional[Literal["chunking", "entities", "pos", "parsing"]]
    """The task; `pos` and `parsing` are of CoNLL-U files."""
    train: str
    """File of labelled sentences."""
    dev: str
    """File of the sentences to evaluate on."""
    unlabelled: tuple[str, ...]
    """Text without labels, for Cross-View Training."""
    output: str
    """Directory for the runs, the table and the plot."""
    preset: str = "tiny"
    """Size of the networks, or a pretrained encoder."""
    fractions: tuple[float, ...] = (0.05, 0.25, 1.0)
    """Parts of the labelled sentences."""
    methods: tuple[Literal["supervised", "CVT", "word_dropout", "vat"], ...] = (
        "supervised",
        "CVT",
    )
    """How to train; the last two are the thesis's baselines (4.3.2)."""
    seeds: int = 3
    """Runs of each."""
    steps: int = 2000
    """Updates of each run."""
    batch_size: int = 32
    """Sentences in an update."""
    max_unlabelled: int = 100_000
    """Unlabelled sentences, at most."""
    unlabelled_dropout: float | None = None
    """Dropout rate on them; the published one if not given."""
    ema: float = 0.99
    """Momentum of the average of the weights."""
    dtype: Literal["float32", "mixed_bfloat16", "auto"] = "auto"
    """Precision; `auto` is bfloat16 where the hardware multiplies it faster."""


def configuration(method, sentences, seed, settings):
    """Returns the configuration of a run."""
    config_class = ParsingConfig if settings.task == "parsing" else CrossViewConfig
    config = config_class(
        output=str(Path(settings.output, "runs", f"{sentences} {method}, seed {seed}")),
        preset=settings.preset,
        unlabelled=() if method == "supervised" else settings.unlabelled,
        max_unlabelled=settings.max_unlabelled,
        steps=settings.steps,
        interval=max(settings.steps // 5, 1),
        batch_size=settings.batch_size,
        unlabelled_dropout=settings.unlabelled_dropout,
        ema=settings.ema,
        dtype=settings.dtype,
        seed=seed,
    )
    if method in ("word_dropout", "vat"):
        config = dataclasses.replace(config, views=(method,))
    return config


def score(method, sentences, seed, task, settings):
    """Returns the score of a run, which is trained if it has not been."""
    config = configuration(method, sentences, seed, settings)
    results = Path(config.output, "results.json")
    if not results.exists():
        train_split = task.splits["train"]
        task.splits["train"] = train_split.take(sentences)
        print(f"\n=== {sentences} sentences, {method}, seed {seed} ===", flush=True)
        finished = train(task, config)
        task.splits["train"] = train_split
        if finished is None:
            raise SystemExit(130)
    return json.loads(results.read_text())["dev"][task.main_metric]


def table(scores, metric):
    """Returns the table, in Markdown.

    Args:
        scores: Number of sentences -> method -> scores of the seeds.
        metric: Name of the score.

    >>> print(table({9: {"supervised": [1.0, 3.0], "CVT": [4.0, 5.0]}}, "f1"))
    | labelled sentences | f1, supervised | f1, CVT | CVT is better by |
    |---:|---:|---:|---:|
    | 9 | 2.0 ± 1.0 | 4.5 ± 0.5 | 2.5 ± 0.5 |
    """
    methods = [*next(iter(scores.values()))]
    better = [m for m in methods if m != "supervised" and "supervised" in methods]
    heads = ["labelled sentences", *(f"{metric}, {m}" for m in methods)]
    heads += [f"{method} is better by" for method in better]
    lines = [f"| {' | '.join(heads)} |", f"|{'---:|' * len(heads)}"]
    for sentences, found in scores.items():
        found = {method: np.array(values) for method, values in found.items()}
        cells = [f"{sentences:,}", *(with_error(v, 1) for v in found.values())]
        cells += [with_error(found[m] - found["supervised"], 1) for m in better]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(scores, curves, metric, path):
    """Draws scores over labelled sentences, and through training with the fewest.

    Args:
        scores: Number of sentences -> method -> scores of the seeds.
        curves: Method -> pairs of updates and scores, arrays `[seeds, points]`.
        metric: Name of the score.
        path: File to write.
    """
    from matplotlib.figure import Figure

    few = min(scores)
    over_labels = {
        method: ([*scores], np.array([found[method] for found in scores.values()]).T)
        for method in scores[few]
    }
    panels = [(curves, f"updates, with {few:,} labelled sentences", "linear")]
    if len(scores) > 1:
        panels.insert(0, (over_labels, "labelled sentences", "log"))
    figure = Figure(figsize=(5 * len(panels), 4), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (lines, label, scale) in zip(axes, panels, strict=True):
        for method, (x, values) in lines.items():
            (line,) = axis.plot(x, values.mean(axis=0), "o-", label=method)
            least, most = values.min(axis=0), values.max(axis=0)
            axis.fill_between(x, least, most, color=line.get_color(), alpha=0.2)
        axis.set(xlabel=label, ylabel=metric, xscale=scale)
        axis.grid(alpha=0.3)
        axis.legend()
    figure.savefig(path, dpi=110)


def curves_of(scores, metric, settings):
    """Returns what `draw` shows through training."""
    found = {}
    for method in settings.methods:
        runs = [
            read_metrics(
                Path(configuration(method, min(scores), seed, settings).output)
                / "metrics.csv"
            )
            for seed in range(settings.seeds)
        ]
        steps = [row["step"] for row in runs[0]]
        values = [[100 * row[f"val_{metric}"] for row in rows] for rows in runs]
        found[method] = steps, np.array(values)
    return found


def main(settings):
    task = TASKS[settings.task]({"train": settings.train, "dev": settings.dev})
    if not all(0 < fraction <= 1 for fraction in settings.fractions):
        raise ValueError("--fractions must be above 0 and at most 1.")
    total, rows = len(task.splits["train"].examples), []
    counts = [round(fraction * total) for fraction in sorted(settings.fractions)]
    for method in settings.methods:
        configuration(method, total, 0, settings).check()
    # Seed by seed, so that a stopped comparison has all of some seeds.
    for seed in range(settings.seeds):
        for count in counts:
            for method in settings.methods:
                found = score(method, count, seed, task, settings)
                rows.append((count, method, seed, found))
    output = Path(settings.output)
    with open(output / "scores.csv", "w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *rows])
    scores = {count: {method: [] for method in settings.methods} for count in counts}
    for count, method, _, found in rows:
        scores[count][method].append(found)
    curves = curves_of(scores, task.main_metric, settings)
    draw(scores, curves, task.main_metric, output / "scores.png")
    text = table(scores, task.main_metric)
    (output / "table.md").write_text(text + "\n")
    print(f"\n{text}")


if __name__ == "__main__":
    try:
        main(tyro.cli(Settings, description=__doc__, use_underscores=True))
    except ValueError as error:
        raise SystemExit(f"Error: {error}") from error
