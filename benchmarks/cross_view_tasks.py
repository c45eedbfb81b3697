"""Trains taggers and parsers one by one, and together on one encoder.

    python -m benchmarks.cross_view_tasks tasks.toml --unlabelled wiki.txt \\
        --new_task entities --output RESULTS

Supervised and by Cross-View Training, each task has as many updates (Clark's
thesis, table 4.2); on text without labels all tasks learn together, and one by one
(table 4.3). A new task is learned from nothing, and on the encoder that the others have
left, which stays as it is (table 4.5). `recipes/cvt_multitask.py` describes the TOML
file. Called again, it goes on where it was stopped.
"""

import csv
import dataclasses
from pathlib import Path

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
    CrossViewMultiTaskConfig,
    ParsingConfig,
)
from keras_corrupt.cross_view.multi_task.setup import check_tasks
from keras_corrupt.cross_view.tasks import TASK_KINDS
from keras_corrupt.tasks.task_files import read_task_file

#: Whether there is text without labels -> what that is called.
METHODS = {False: "supervised", True: "CVT"}


@dataclasses.dataclass(kw_only=True)
class Settings(CrossViewSettings):
    """What to train; `--steps` and `labelled_first` are those for each task."""

    task_file: tyro.conf.Positional[str]
    """The tasks, in TOML."""
    new_task: str | None = None
    """One of the tasks, that the others' encoders have not learned."""
    max_train: int | None = None
    """Labelled sentences of each task, at most."""


class Runs:
    """The runs of one seed."""

    def __init__(self, tasks, settings, seed):
        self.settings, self.seed = settings, seed
        self.new = [task for task in tasks if task.name == settings.new_task]
        self.known = [task for task in tasks if task not in self.new]

    def alone(self, task, name, with_text=False, **own):
        """Returns the score of a run on one task."""
        config = alone(task, name, self.seed, self.settings, with_text, **own)
        finish(task, config)
        return score(task, config.output)

    def together(self, name, with_text, **own):
        """Returns the directories of the known tasks' models on one encoder."""
        number = len(self.known)
        first = value_of(self.settings.options.get("labelled_first", "None"))
        config = self.settings.configuration(
            CrossViewMultiTaskConfig,
            f"together {name}",
            self.seed,
            with_text,
            steps=self.settings.steps * number,
            labelled_first=first if first is None else first * number,
            **own,
        )
        outputs = [Path(config.output, task.name) for task in self.known]
        finish(self.known, config, outputs)
        return outputs

    def scores(self):
        """Yields (task, how it was learned, score)."""
        for with_text, method in METHODS.items():
            for task in self.known:
                yield task, f"alone, {method}", self.alone(task, method, with_text)
            outputs = self.together(method, with_text)
            yield from self.scores_of(outputs, f"together, {method}")
            for task in self.new:
                value = self.alone(
                    task,
                    f"after {method}",
                    start=outputs[0],
                    freeze_encoder=True,
                )
                yield task, f"together, {method}", value
        name = "CVT, one task at a time"
        outputs = self.together(name, True, one_task_at_a_time=True)
        yield from self.scores_of(outputs, f"together, {name}")
        for task in self.new:
            yield task, "alone, supervised", self.alone(task, "supervised")

    def scores_of(self, outputs, name):
        """Yields (task, `name`, score) of the known tasks' models."""
        for task, output in zip(self.known, outputs, strict=True):
            yield task, name, score(task, output)


def alone(task, name, seed, settings, with_text, **own):
    """Returns the configuration of a run on one task."""
    parses = task.kind == "dependency_parsing"
    config_class = ParsingConfig if parses else CrossViewConfig
    name = f"{task.name} {name}"
    return settings.configuration(config_class, name, seed, with_text, **own)


def table(rows):
    """Returns the table, in Markdown.

    Args:
        rows: Tuples of task and metric, how it was learned, seed, score.

    >>> print(table([("pos", "alone", 0, 1.0), ("pos", "alone", 1, 3.0)]))
    | | pos |
    |---|---:|
    | alone | 2.0 ± 1.0 |
    """
    tasks = [*dict.fromkeys(task for task, *_ in rows)]
    lines = [f"| | {' | '.join(tasks)} |", f"|---|{'---:|' * len(tasks)}"]
    for method in sorted({method for _, method, *_ in rows}, reverse=True):
        cells = []
        for task in tasks:
            values = [value for t, m, _, value in rows if (t, m) == (task, method)]
            cells.append(with_error(np.array(values), 1) if values else "")
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(settings):
    tasks = read_task_file(settings.task_file, TASK_KINDS)
    names = [task.name for task in tasks]
    if settings.new_task and settings.new_task not in names:
        raise ValueError(
            f"--new_task must be one of {', '.join(names)}; got {settings.new_task!r}."
        )
    tasks = [task.first(settings.max_train) for task in tasks]
    for task in tasks:
        check(task, alone(task, "CVT", 0, settings, with_text=True))
    config = settings.configuration(CrossViewMultiTaskConfig, "together", 0, True)
    check_tasks(Runs(tasks, settings, 0).known, config)
    rows = []
    for seed in settings.all_seeds():
        for task, method, value in Runs(tasks, settings, seed).scores():
            rows.append((f"{task.name} ({task.main_metric})", method, seed, value))
    output = Path(settings.output)
    with open(output / "scores.csv", "w", newline="") as file:
        csv.writer(file).writerows([("task", "method", "seed", "score"), *rows])
    text = table(rows)
    (output / "table.md").write_text(text + "\n")
    print(f"\n{text}")


if __name__ == "__main__":
    try:
        main(tyro.cli(Settings, description=__doc__, use_underscores=True))
    except (TypeError, ValueError, OSError) as error:
        raise SystemExit(f"Error: {error}") from error
