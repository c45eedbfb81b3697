"""Fine-tuning runs: several seeds of a task, their scores, and what they predict.

output/<task>/<settings>/seed-0.json    settings, scores and curve of a run
seed-0.npz     what its model puts out for each example
preset/        the best run's model
predictions/   the best run's, in the benchmark's format
"""

import dataclasses
import sys
from pathlib import Path

import tyro

from keras_corrupt.devices.log_level import hide_start_up_lines
from keras_corrupt.downstream import results
from keras_corrupt.training.run_directory import locked


@dataclasses.dataclass(frozen=True)
class FinetuneConfig:
    """Everything that decides what fine-tuning does, beside the task."""

    preset: str
    """A pretrained or fine-tuned model: its directory, or a trained preset's name."""
    output: str
    """Directory of the results; runs that it holds are not run again."""
    system: str | None = None
    """`module:Class` of the preset's model, where it is not one of this package."""
    seeds: int = 5
    """Runs of each task, with the seeds 0, 1, ..."""
    load_weights: bool = True
    """Whether to start from the preset's weights, or from new ones (to compare)."""
    retries: int = 2
    """How often a failed run is repeated with another seed."""
    max_length: int | None = None
    """Tokens in a sequence, at most; as many as the encoder reads if not given."""
    max_train_examples: int | None = None
    """Training examples to use, from the first on; all if not given."""
    max_dev_examples: int | None = None
    """Development examples to use; all if not given."""
    dtype: str = "float32"
    """Precision: `float32`, `mixed_bfloat16` or `mixed_float16`."""

    settings: dict[str, int | float | str] = dataclasses.field(default_factory=dict)
    """Settings other than the paper's: names and values of `FineTuningSettings`."""
    search: bool = False
    """Whether to try all settings that the paper searched, and take the best."""
    ensemble: int = 0
    """How many of the best runs to let predict together; 0 for none."""


def main(config, make_tasks, description):
    """Runs a recipe from the command line.

    Args:
        config: The recipe's `FinetuneConfig`, or one with more fields; its fields
            become flags, its values their defaults.
        make_tasks: Function of the configuration that returns the tasks.
        description: Help text, the recipe's docstring.
    """
    hide_start_up_lines()
    config = tyro.cli(type(config), default=config, description=description)

    # Not above: help needs no Keras.
    from keras_corrupt.models import Pretrainer
    from keras_corrupt.models.registry import import_class

    try:
        if config.system:
            import_class(config.system, Pretrainer)  # by which presets find it
        finetune(make_tasks(config), config)
    except (ValueError, OSError) as error:
        sys.exit(f"Error: {error}")


def finetune(tasks, config):
    """Fine-tunes on tasks, one after another, and reports.

    Args:
        tasks: A list of `Task`.
        config: A `FinetuneConfig`.

    Returns:
        The rows of the table of results.
    """
    from keras_corrupt.downstream.finetuner import Finetuner

    # All tasks are checked before anything is made.
    finetuners = [Finetuner(task, config) for task in tasks]
    output = Path(config.output)
    output.mkdir(parents=True, exist_ok=True)
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
                    finetuner.guess(),
                    ensemble_score,
                    finetuner.task.published(finetuner.size),
                )
            )
            text = results.write(rows, output)
    print(
        f"\n{text}\n\nIn {output}: results.md, curves.png, and a folder for each "
        "task with its best model and predictions."
    )
    return rows
