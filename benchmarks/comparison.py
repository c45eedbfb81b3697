"""What comparisons of pretraining runs have in common."""

import csv
from pathlib import Path

import numpy as np

from keras_corrupt.presets.overrides import merge
from keras_corrupt.tokenizers import load
from keras_corrupt.training import PretrainConfig, pretrain, report


def configuration(settings, output, **options):
    """Returns the `PretrainConfig` of one of the runs, with the Adam of short ones.

    Args:
        settings: Has the `data`, `sequence_length` and peak `learning_rate` of all.
        output: The run's directory.
        options: The run's own, such as `model` and `steps`.
    """
    return PretrainConfig(
        output=str(output),
        data=settings.data,
        sequence_length=settings.sequence_length,
        learning_rate=settings.learning_rate,
        beta_2=0.98,
        bias_correction=True,
        **options,
    )


def step_flops(config):
    """Returns the FLOPs of an update of a run that has not begun."""
    main = next(iter(config.model_class.network_arguments))
    size = {main: {"vocabulary_size": load(config.data).vocabulary_size}}
    options = merge(config.objective, size)
    return report.step_flops(
        config, config.model_class.from_preset(config.preset, **options)
    )


def train(config):
    """Trains, or goes on where the run was stopped; returns the model."""
    model = pretrain(config)
    if model is None:
        raise SystemExit("Stopped.")
    return model


def kept_presets(runs):
    """Yields each run, a `Path`, with the step and the path of a preset it has kept."""
    for run in map(Path, runs):
        presets = sorted(run.glob("presets/step-*"))
        if not presets:
            raise SystemExit(f"{run} has kept no presets: train with --keep_presets.")
        for preset in presets:
            yield run, int(preset.name.removeprefix("step-")), preset


def write_rows(rows, path):
    """Writes a CSV file of dicts; makes its folder."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with Path(path).open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def with_error(values, digits=3):
    """Returns the mean and, of several values, its standard error.

    >>> with_error(np.array([1.0, 2.0, 3.0]))
    '2.000 ± 0.577'
    """
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):.{digits}f} ± {error:.{digits}f}"
