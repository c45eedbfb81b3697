"""Continual pretraining on a domain: a preset, a corpus, and what it has brought."""

import argparse
import dataclasses
import sys
from pathlib import Path

from keras_corrupt.commands.frame import hide_start_up_lines
from keras_corrupt.downstream.finetune import FinetuneConfig
from keras_corrupt.training.config import PretrainConfig


@dataclasses.dataclass(frozen=True)
class AdaptationConfig(PretrainConfig):
    """A pretraining run that starts from a preset, and a task before and after."""

    task: tuple[str, ...] = ()
    """A task of your own: the file of its training examples and, if there is one, that
    of its development examples. TSV, CSV or JSONL."""
    text: str = "text"
    """The task's column of texts."""
    label: str = "label"
    """The task's column of labels."""
    seeds: int = 3
    """Runs of the task, of which the median is shown."""
    settings: dict[str, int | float | str] = dataclasses.field(default_factory=dict)
    """Settings of the task other than the paper's."""

    #: The use of the result may differ when a run is continued.
    MAY_CHANGE = (
        *PretrainConfig.MAY_CHANGE,
        "task",
        "text",
        "label",
        "seeds",
        "settings",
    )


def of_preset(recipe, flags):
    """Returns a recipe with the model of the preset that `--init_from` names.

    Args:
        recipe: An `AdaptationConfig`.
        flags: The command line, a list of strings.

    Raises:
        ValueError: It is no preset, or one of an unknown model.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--init_from", "--init-from")
    parser.add_argument("--model")
    options, _ = parser.parse_known_args(flags)
    if not options.init_from or options.model:
        return recipe
    hide_start_up_lines()
    from keras_corrupt.models import Pretrainer
    from keras_corrupt.presets import Preset
    from keras_corrupt.presets.registry import registered_name

    cls = Preset.open(options.init_from, Pretrainer).model_class
    return dataclasses.replace(recipe, model=registered_name(cls))


def adapt(config):
    """Trains a preset on a domain, then compares it with what it was.

    The run prints the losses on held-out text before and after: of the corpus, and of
    the text that is mixed in. For a task it prints the scores of both encoders.

    Args:
        config: An `AdaptationConfig`.

    Returns:
        The model, or `None` if the user stopped the run.

    Raises:
        ValueError: A setting, of the task or of the run, cannot work, or `--output`
            holds results of others. `pretrain` has more errors.
    """
    from keras_corrupt.training.pretraining import pretrain, trial_model

    if config.smoke and not config.init_from:
        config = dataclasses.replace(config, init_from=made_up_preset(config))
    if not config.init_from:
        raise ValueError("Say what to adapt: --init_from, a preset's directory.")
    # A faulty task, or one that cannot be fine-tuned, shows now.
    if task := task_of(config):
        from keras_corrupt.downstream.finetuner import Finetuner

        _ = trial_model(config).encoder
        finetuning = fine_tuning(config, "before", config.init_from)
        finetuning.check()
        Finetuner(task, finetuning)
    model = pretrain(config)
    if model is None:
        return None
    output = Path(config.output)
    if config.grow_vocabulary:
        print(
            "\nBefore: with the grown vocabulary, whose new pieces no update had met. "
            "A loss is per token and does not compare with the old vocabulary's."
        )
    if config.task:
        compare(config, {"before": config.init_from, "after": output / "preset"})
    return model


def fine_tuning(config, name, preset):
    """Returns the `FinetuneConfig` of the task, from a preset on.

    Args:
        config: An `AdaptationConfig`.
        name: What the preset is, `"before"` or `"after"`.
        preset: Its directory or name.
    """
    from keras_corrupt.devices import precision

    return FinetuneConfig(
        preset=str(preset),
        output=str(Path(config.output) / "task" / name),
        seeds=config.seeds,
        max_length=config.sequence_length,
        dtype=precision.named(config.dtype),
        settings=config.settings,
    )


def compare(config, presets):
    """Fine-tunes presets on the task, and prints their scores.

    Args:
        config: An `AdaptationConfig`.
        presets: Name -> preset.

    Returns:
        Name -> the median score.
    """
    import statistics

    from keras_corrupt.downstream import finetune

    rows = {}
    for name, preset in presets.items():
        (rows[name],) = finetune([task_of(config)], fine_tuning(config, name, preset))
    task = task_of(config)
    scores = {
        name: [result["score"] for result in row.results] for name, row in rows.items()
    }
    medians = {name: statistics.median(values) for name, values in scores.items()}
    print(f"\n{task.name}, {task.main_metric}, the median of {config.seeds}:")
    for name, values in scores.items():
        shown = ", ".join(f"{score:.1f}" for score in sorted(values))
        print(f"  {name:8}{medians[name]:6.1f}  ({shown})")
    guess = next(iter(rows.values())).guess
    print(f"  {'guess':8}{guess:6.1f}")
    return medians


def task_of(config):
    """Returns the configuration's task, `None` if it has none.

    Raises:
        ValueError: `--task` names too many files, or they do not fit.
    """
    from keras_corrupt.tasks.tables import Columns, TableTask

    if not config.task:
        return None
    if len(config.task) > 2:
        raise ValueError(
            f"--task {' '.join(config.task)}: give the file of the training examples "
            "and at most one more, of the development examples."
        )
    columns = Columns(config.text, label=config.label)
    return TableTask(config.task[0], columns, dev=dict(enumerate(config.task)).get(1))


def made_up_preset(config):
    """Returns the preset of a run in miniature, for `--smoke` without `--init_from`."""
    from keras_corrupt.training import pretrain

    start = dataclasses.replace(
        config, output=f"{config.output}_start", mix=(), generator_steps=None
    )
    print("Making a preset to start from.", file=sys.stderr)
    pretrain(dataclasses.replace(start, grow_vocabulary=0))
    return f"{start.output}/preset"
