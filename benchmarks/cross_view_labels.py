"""Trains with parts of the labels: by Cross-View Training, and by its baselines.

    python -m benchmarks.cross_view_labels chunking --train conll2000/train.txt \\
        --dev conll2000/dev.txt --unlabelled wiki.txt --output RESULTS
    python -m benchmarks.cross_view_labels translation --train train.en train.de \\
        --dev val.en val.de --unlabelled wiki.txt --options labelled_dropout 0.2 \\
        --output RESULTS

All learn from the same first sentences of the training file (Clark's thesis, figure
4.5). Where there is text, the first updates are on labels, then every second one is.
`--methods` has the thesis's baselines and ablations, too, and controls: Cross-View
Training with as many updates on labels as the supervised run has in all, supervised
learning with as many updates as that run, and that run without further text. The last
average of the weights is scored on the sentences to evaluate on. Called again, it goes
on where it was stopped.
"""

import csv
import dataclasses
from pathlib import Path
from typing import Literal

import numpy as np
import tyro

from benchmarks.comparison import with_error
from benchmarks.cross_view import (
    CrossViewSettings,
    check,
    finish,
    score,
    value_of,
)
from keras_corrupt.cross_view import (
    CrossViewConfig,
    ImageConfig,
    ParsingConfig,
    TranslationConfig,
)
from keras_corrupt.cross_view.presets import PRESETS
from keras_corrupt.cross_view.tasks.dependencies import DependencyTask
from keras_corrupt.cross_view.tasks.images import ImageTask
from keras_corrupt.cross_view.tasks.translation import TranslationTask
from keras_corrupt.tasks.conll import TaggingTask
from keras_corrupt.training.callbacks import read_metrics


def tagging(name, **columns):
    def task(train, dev, count):
        files = {"train": train[0], "dev": dev[0]}
        return TaggingTask(name, files, **columns).first(count)

    return task


def parsing(train, dev, count):
    files = {"train": train[0], "dev": dev[0]}
    return DependencyTask("parsing", files).first(count)


def translation(train, dev, count):
    return TranslationTask("translation", {"train": train, "dev": dev}, max_train=count)


def images(train, dev, count):
    return ImageTask("images", {"train": train, "dev": dev}, max_train=count)


#: Task -> class of its configuration, and function of the files to learn from, those to
#: evaluate on and the number of sentences or images to learn from.
TASKS = {
    "chunking": (CrossViewConfig, tagging("chunking", scheme="bioes")),
    "entities": (CrossViewConfig, tagging("entities", scheme="bioes")),
    "pos": (CrossViewConfig, tagging("pos", tag_column=3, scheme="plain")),
    "parsing": (ParsingConfig, parsing),
    "translation": (TranslationConfig, translation),
    "images": (ImageConfig, images),
}
#: Method -> settings; all but the supervised one learn from text, too.
METHODS = {
    "supervised": {},
    "CVT": {},
    # On the encoder of the supervised run, so that no module teaches before it knows
    # anything.
    "CVT_on_supervised": {},
    # A tagger that knows the text's words and learns nothing from it: what learns from
    # smoothed labels is never so sure.
    "vocabulary_alone": {"confidence": 0.999999},
    # The thesis's baselines (4.3.2).
    "word_dropout": {"views": ("word_dropout",)},
    "vat": {"views": ("vat",)},
    # Table 4.4, of taggers.
    "no_forward_backward": {"views": ("future", "past", "full")},
    "no_future_past": {"views": ("forward", "backward", "full")},
    # 4.5.
    "hard_targets": {"hard_targets": True},
    "confidence": {"confidence": 0.9},
    "mean_teacher": {},  # of the result's momentum, `--ema`
    # Controls.
    "CVT_equal_labels": {},
    "supervised_longer": {},
    "no_further_text": {},
    # Table 4.6, of images.
    "no_perturbation": {"perturbation": "none"},
    "random_perturbation": {"perturbation": "random"},
}
#: Methods whose runs have more than `--steps`: so many that a run with text has that
#: many on labels.
LONGER = ("CVT_equal_labels", "supervised_longer", "no_further_text")
#: Methods that learn from labels alone.
WITHOUT_TEXT = ("supervised", "supervised_longer")
COLUMNS = ("labelled", "method", "seed", "score")


@dataclasses.dataclass(kw_only=True)
class Settings(CrossViewSettings):
    """What to train."""

    task: tyro.conf.Positional[Literal[tuple(TASKS)]]
    """The task; `pos` and `parsing` are of CoNLL-U files."""
    train: tuple[str, ...]
    """File of labelled sentences; of translation two, of images any number."""
    dev: tuple[str, ...]
    """File of the sentences to evaluate on."""
    fractions: tuple[float, ...] = (0.05, 0.25, 1.0)
    """Parts of the labelled sentences."""
    methods: tuple[Literal[tuple(METHODS)], ...] = ("supervised", "CVT")
    """How to train."""


def configuration(method, count, seed, settings):
    """Returns the configuration of a run."""
    config_class, _ = TASKS[settings.task]
    own, start = dict(METHODS[method]), None
    first, steps = steps_of(method, settings)
    if method == "no_further_text":
        own |= text_of_labelled(count, settings)
    if method == "mean_teacher":
        own["mean_teacher"] = settings.ema
    if method == "CVT_on_supervised":
        start = settings.directory(f"{count} supervised", seed)
    return settings.configuration(
        config_class,
        f"{count} {method}",
        seed,
        with_text=method not in WITHOUT_TEXT,
        steps=steps,
        start=start,
        labelled_first=first,
        **own,
    )


def steps_of(method, settings):
    """Returns the updates of a run before text has its turn, and all of them."""
    config_class, _ = TASKS[settings.task]
    first = value_of(settings.options.get("labelled_first", "None"))
    if first is None:
        is_trained = settings.preset not in PRESETS or method == "CVT_on_supervised"
        first = 0 if is_trained else int(config_class.LABELLED_SHARE * settings.steps)
    more = settings.steps - first if method in LONGER else 0
    return first, settings.steps + more


def text_of_labelled(count, settings):
    """Returns the settings by which a run's text is what has labels."""
    if settings.task == "images":
        return {"unlabelled": settings.train, "max_unlabelled": count}
    _, make_task = TASKS[settings.task]
    examples = make_task(settings.train, settings.dev, count).splits["train"].examples
    lines = [x if isinstance(x, str) else " ".join(x) for x in examples]
    path = Path(settings.output, f"{count} labelled.txt")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    in_words = {} if settings.task == "translation" else {"in_words": True}
    return {"unlabelled": (str(path),), **in_words}


def updates_table(settings):
    """Returns how many updates of each method are on labels, and on text."""
    lines = ["| method | updates on labels | updates on text |", "|---|---:|---:|"]
    for method in settings.methods:
        first, steps = steps_of(method, settings)
        text = 0 if method in WITHOUT_TEXT else (steps - first) // 2
        lines.append(f"| {method} | {steps - text:,} | {text:,} |")
    return "\n".join(lines)


def check_start(settings):
    """Raises a `ValueError` if no run can start from the supervised one's encoder."""
    if settings.methods[0] != "supervised":
        raise ValueError("--methods: CVT_on_supervised needs supervised, as the first.")
    if settings.task in ("translation", "images"):
        raise ValueError(
            "--methods: CVT_on_supervised is of taggers and parsers. --options "
            "labelled_first N gives labels the first updates of all."
        )


def table(scores, metric):
    """Returns the table, in Markdown.

    Args:
        scores: Number of labelled examples -> method -> scores of the seeds.
        metric: Name of the score.

    >>> print(table({9: {"supervised": [1.0, 3.0], "CVT": [4.0, 5.0]}}, "f1"))
    | labelled examples | f1, supervised | f1, CVT | CVT is better by |
    |---:|---:|---:|---:|
    | 9 | 2.0 ± 1.0 | 4.5 ± 0.5 | 2.5 ± 0.5 |
    """
    methods = [*next(iter(scores.values()))]
    better = [m for m in methods if m != "supervised" and "supervised" in methods]
    heads = ["labelled examples", *(f"{metric}, {m}" for m in methods)]
    heads += [f"{method} is better by" for method in better]
    lines = [f"| {' | '.join(heads)} |", f"|{'---:|' * len(heads)}"]
    for count, of_method in scores.items():
        of_method = {method: np.array(values) for method, values in of_method.items()}
        cells = [f"{count:,}", *(with_error(v, 1) for v in of_method.values())]
        cells += [with_error(of_method[m] - of_method["supervised"], 1) for m in better]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(scores, curves, metric, path):
    """Draws scores over the number of labels, and through training with the fewest.

    Args:
        scores: Number of labelled examples -> method -> scores of the seeds.
        curves: Method -> updates, and at each of them the scores of the seeds; may be
            empty.
        metric: Name of the score.
        path: File to write.
    """
    from matplotlib.figure import Figure

    few = min(scores)
    over_labels = {
        method: ([*scores], [of_method[method] for of_method in scores.values()])
        for method in scores[few]
    }
    panels = []
    if len(scores) > 1 or not curves:
        panels.append((over_labels, "labelled examples", "log"))
    if curves:
        panels.append((curves, f"updates, with {few:,} labelled examples", "linear"))
    figure = Figure(figsize=(5 * len(panels), 4), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (lines, label, scale) in zip(axes, panels, strict=True):
        for method, (x, values) in lines.items():
            means = [np.mean(seeds) for seeds in values]
            (line,) = axis.plot(x, means, "o-", label=method)
            least, most = ([f(seeds) for seeds in values] for f in (min, max))
            axis.fill_between(x, least, most, color=line.get_color(), alpha=0.2)
        axis.set(xlabel=label, ylabel=metric, xscale=scale)
        if scale == "log":
            axis.set_xticks([*scores], [f"{count:,}" for count in scores])
            axis.minorticks_off()
        axis.grid(alpha=0.3)
        axis.legend()
    figure.savefig(path, dpi=110)


def curves_of(scores, metric, settings):
    """Returns what `draw` shows through training."""
    curves = {}
    for method in settings.methods:
        runs = [
            read_metrics(
                Path(configuration(method, min(scores), seed, settings).output)
                / "metrics.csv"
            )
            for seed in settings.all_seeds()
        ]
        steps = [row["step"] for row in runs[0]]
        values = [[100 * row[f"val_{metric}"] for row in rows] for rows in runs]
        curves[method] = steps, np.transpose(values)
    return curves


def main(settings):
    _, make_task = TASKS[settings.task]
    task = make_task(settings.train, settings.dev, None)
    if not all(0 < fraction <= 1 for fraction in settings.fractions):
        raise ValueError("--fractions must be above 0 and at most 1.")
    total, rows = len(task.splits["train"]), []
    counts = [round(fraction * total) for fraction in sorted(settings.fractions)]
    if "CVT_on_supervised" in settings.methods:
        check_start(settings)
    for method in settings.methods:
        check(task, configuration(method, total, 0, settings))
    # Seed by seed, so that a stopped comparison has all of some seeds.
    for seed in settings.all_seeds():
        for count in counts:
            part = make_task(settings.train, settings.dev, count)
            for method in settings.methods:
                config = configuration(method, count, seed, settings)
                finish(part, config)
                rows.append((count, method, seed, score(part, config.output)))
    output = Path(settings.output)
    with open(output / "scores.csv", "w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *rows])
    scores = {count: {method: [] for method in settings.methods} for count in counts}
    for count, method, _, value in rows:
        scores[count][method].append(value)
    curves = curves_of(scores, task.main_metric, settings)
    draw(scores, curves, task.main_metric, output / "scores.png")
    text = f"{table(scores, task.main_metric)}\n\n{updates_table(settings)}"
    (output / "table.md").write_text(text + "\n")
    print(f"\n{text}")


if __name__ == "__main__":
    try:
        main(tyro.cli(Settings, description=__doc__, use_underscores=True))
    except (TypeError, ValueError, OSError) as error:
        raise SystemExit(f"Error: {error}") from error
