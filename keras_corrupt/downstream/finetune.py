"""Fine-tuning runs: several seeds of a task, their scores, and what they predict.

output/<task>/<settings>/seed-0.json    what decided a run, its scores, its curve
seed-0.npz     what its model puts out for each example
preset/        the best run's model
predictions/   the best run's, in the benchmark's format
"""

import dataclasses
import sys
import tempfile
from pathlib import Path
from typing import Literal

import tyro

from keras_corrupt.commands.bounds import Bounds, check_bounds, check_whole_numbers
from keras_corrupt.commands.frame import command, errors_in_a_line
from keras_corrupt.downstream import results
from keras_corrupt.training.run_directory import locked

#: Field of a `RunsConfig` -> its bounds.
BOUNDS = {
    "seeds": Bounds(1),
    "max_length": Bounds(8),
    "max_train_examples": Bounds(1),
    "max_dev_examples": Bounds(1),
    "retries": Bounds(0),
    "ensemble": Bounds(0),
    "teachers": Bounds(1),
}


@dataclasses.dataclass(frozen=True)
class RunsConfig:
    """What decides runs of any kind on tasks, beside the tasks."""

    preset: str
    """A pretrained or fine-tuned model: its directory, or a trained preset's name."""
    output: str
    """Directory of the results; runs that it holds are not run again, nor replaced."""
    system: str | None = None
    """`module:Class` of the preset's model, where it is not one of this package."""
    seeds: int = 3
    """Runs of each task, with the seeds 0, 1, ..., of which the median is reported.
    Clark's thesis takes 10, TEAMS 5. More can be added to those that are there."""
    load_weights: bool = True
    """Whether to start from the preset's weights, or from new ones (to compare)."""
    max_length: int | None = None
    """Tokens in a sequence, at most; as many as the encoder reads if that is fewer, or
    if not given."""
    max_train_examples: int | None = None
    """Training examples to use, from the first on; all if not given."""
    max_dev_examples: int | None = None
    """Development examples to use; all if not given."""
    dtype: Literal["float32", "mixed_bfloat16", "mixed_float16"] = "float32"
    """Precision of the layers."""

    settings: dict[str, int | float | str] = dataclasses.field(default_factory=dict)
    """Settings other than the paper's: names and values of `FineTuningSettings`."""
    smoke: bool = False
    """Shrink everything, to see that it runs; files that are not given are made."""

    def shrunk(self):
        """Returns the `--smoke` form: the same path through the code, in seconds."""
        return dataclasses.replace(
            self,
            seeds=min(self.seeds, 2),
            max_length=min(self.max_length or 32, 32),
            max_train_examples=min(self.max_train_examples or 16, 16),
            max_dev_examples=min(self.max_dev_examples or 16, 16),
            settings={**self.settings, "epochs": 1, "batch_size": 8},
        )

    def check(self):
        """Raises a `ValueError` for a number that cannot work; names the flag."""
        check_whole_numbers(self)
        check_bounds(vars(self), BOUNDS)


@dataclasses.dataclass(frozen=True)
class FinetuneConfig(RunsConfig):
    """Everything that decides what fine-tuning does, beside the task."""

    retries: int = 2
    """How often a failed run is repeated with another seed."""
    search: bool = False
    """Whether to try all values that the paper searched, and take the best; settings
    that are given, or the task's own, stay as they are."""
    ensemble: int = 0
    """How many of the best runs to let predict together; 0 for none."""

    def shrunk(self):
        one = {"seeds": 1, "ensemble": min(self.ensemble, 1)}
        return dataclasses.replace(super().shrunk(), **one, retries=0, search=False)

    def check(self):
        """Raises a `ValueError` for a number that cannot work; names the field."""
        super().check()
        if self.ensemble > self.seeds:
            raise ValueError(
                f"`ensemble` is {self.ensemble}, but there are {self.seeds} runs: "
                "raise `seeds`."
            )


@command("The same command makes the runs that are missing.")
def main(recipe, make_tasks, description, miniature, run=None):
    """Runs a recipe from the command line.

    Args:
        recipe: A `FinetuneConfig`, or another `RunsConfig`; its fields become flags,
            its values their defaults.
        make_tasks: Function of the configuration that returns the tasks.
        description: Help text, the recipe's docstring.
        miniature: Function that writes small files into a folder for `--smoke`, and
            returns the fields that name them. Those that the user gives stay.
        run: Function of the tasks and the configuration; `None` for `finetune`.

    Returns:
        What `run` returns: the rows of the table of results.
    """
    config = tyro.cli(
        type(recipe), default=recipe, description=description, use_underscores=True
    )

    # Not above: help needs no Keras.
    from keras_corrupt.models import Pretrainer
    from keras_corrupt.presets.registry import import_class

    with errors_in_a_line(config):
        config.check()
        if config.smoke:
            config = with_miniature(config.shrunk(), recipe, miniature)
        if config.system:
            import_class(config.system, Pretrainer)  # by which presets find it
        return (run or finetune)(make_tasks(config), config)


def with_miniature(config, recipe, miniature):
    """Returns the configuration with small files where the user gave none."""
    folder = made_directory(f"{config.output}_miniature")
    fields = miniature(folder).items()
    missing = {n: v for n, v in fields if getattr(config, n) == getattr(recipe, n)}
    if missing:
        print(f"--smoke: small files are in {folder}.", file=sys.stderr)
    return dataclasses.replace(config, **missing)


def finetune(tasks, config):
    """Fine-tunes on tasks, one after another, and reports.

    Args:
        tasks: A list of `Task`.
        config: A `FinetuneConfig`.

    Returns:
        The rows of the table of results.
    """
    from keras_corrupt.downstream.finetuner import Finetuner

    config.check()
    if not tasks:
        raise ValueError("`tasks` is empty: name one at least.")
    # All tasks are checked before anything is made.
    finetuners = [Finetuner(task, config) for task in tasks]
    output = made_directory(config.output)
    rows = []
    with locked(output):
        while finetuners:
            finetuner = finetuners.pop(0)  # and its memory is free when it is done
            print(finetuner.banner(), flush=True)
            runs = finetuner.run()
            ensemble_score = None
            if config.ensemble:
                metrics = results.ensemble(finetuner, runs, config.ensemble)
                ensemble_score = metrics[finetuner.dev][finetuner.task.main_metric]
            rows.append(
                results.Row(
                    finetuner.task.name,
                    runs,
                    finetuner.guess,
                    ensemble_score,
                    finetuner.task.published(finetuner.size),
                )
            )
            text = results.write(rows, output)
    print(f"\n{text}\n\nIn {output}: results.md, curves.png, predictions. Best models:")
    for row in rows:
        print(f"{row.task}: {Path(row.results[0]['folder']) / 'preset'}")
    return rows


def made_directory(output):
    """Makes the directory of results, and returns its path.

    Raises:
        OSError: It cannot be made, or written to.
    """
    path = Path(output)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise OSError(
            f"{output} cannot hold results: {error.strerror}. Choose another "
            "`output`, or mend that."
        ) from error
    return path
