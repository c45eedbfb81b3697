"""A pretraining run, as most recipes make it."""

import dataclasses
import functools
import json
import sys

import numpy as np

from keras_corrupt.devices import compiled_programs, distribution, precision
from keras_corrupt.devices.many_updates import most_at_once
from keras_corrupt.devices.peaks import peak_flops
from keras_corrupt.files.whole import write_whole
from keras_corrupt.models.baselines import unigram_baseline
from keras_corrupt.presets.directory import content_hash
from keras_corrupt.training import report
from keras_corrupt.training.batches import (
    HeldOut,
    training_batches,
    validation_batches,
)
from keras_corrupt.training.callbacks import read_metrics, without_prefix
from keras_corrupt.training.collapse import CollapseWatch, recovering, remedy_for
from keras_corrupt.training.compiling import compile_model
from keras_corrupt.training.example_settings import EXAMPLE_SETTINGS, with_data
from keras_corrupt.training.kept_presets import KeptPresets
from keras_corrupt.training.out_of_memory import of_pretraining
from keras_corrupt.training.phases import check_phases, enter, phases_of, warmup_of
from keras_corrupt.training.run import Run, drive
from keras_corrupt.training.stable import (
    check_resumed,
    check_same_vocabulary,
    last_stable_step,
    resume,
)
from keras_corrupt.training.starting import build, check_start, prepare

#: Validation metrics of the model that a run started from, and of what it came to.
BEFORE_FILE, AFTER_FILE = "before.json", "after.json"


def pretrain(config, callbacks=()):
    """Prepares data, trains, evaluates and saves; continues what was begun.

    Args:
        config: A `PretrainConfig`.
        callbacks: Keras callbacks. Their epochs are intervals (`config.interval`), at
            whose end `logs` have the validation metrics, too (`val_loss`, ...). One
            that sets `model.stop_training` stops the run; the same call continues it.

    Returns:
        The trained model, or `None` if the user stopped the run.

    Raises:
        ValueError: A setting cannot work, or the output directory holds a run with
            other settings; nothing was changed.
        NonFiniteLossError: The loss became infinite or not a number.
        CollapseError: The model died, and the run may not go back, or did too often.
        CheckpointError: A checkpoint could not be written or read.
        LostProcessError: Another process of the run ended.
        OutOfMemoryError: A step needs more memory than there is.
    """
    if config.smoke:
        config = config.shrunk()
    config.check()
    config = dataclasses.replace(config, dtype=precision.named(config.dtype))
    devices = distribution.choose(config)
    compiled_programs.keep()
    # One process that lacks the data must not leave the others waiting for it.
    config = devices.in_all_processes(lambda: with_data(config))
    # An option that the model refuses shows now, not after the data are prepared.
    trial = trial_model(config)
    check_phases(config, trial)
    check_start(config, trial)
    devices.in_all_processes(lambda: check_resumed(config), first_only=True)
    check_metric_names(trial)
    check_batch_size(config, trial)
    check_rows(config, trial)
    return drive(PretrainingRun(config, devices, callbacks))


class PretrainingRun(Run):
    """See `Run`.

    Args:
        config: A `PretrainConfig`, complete and checked.
        devices: The run's `Distribution`.
        callbacks: See `pretrain`.
    """

    def __init__(self, config, devices, callbacks):
        super().__init__(config, callbacks)
        self.devices = devices
        self.compared = config.compared
        self.uncompared = ("accumulate", *(EXAMPLE_SETTINGS if config.data else ()))
        self.examples_are = (
            f"--data {config.data}" if config.data else str(self.output / "data")
        )

    def attempt(self, once):
        """Goes back to the last checkpoint if the model dies, with half the rate."""
        return recovering(
            lambda config: once(PretrainingRun(config, self.devices, self.callbacks)),
            self.config,
            self.output,
            self.devices,
        )

    def read(self):
        self.examples = self.devices.in_all_processes(
            lambda: prepare(self.config, self.output)
        )
        fingerprints = self.examples.fingerprints
        self.devices.in_all_processes(
            lambda: check_same_vocabulary(self.config, fingerprints["vocabulary"]),
            first_only=True,
        )
        if self.config.init_from:
            fingerprints["--init_from"] = content_hash(self.config.init_from)
        return fingerprints

    def build(self, checkpoints):
        config, (info, mixed) = self.config, self.examples
        model = build(config, info)
        model.micro_batches = config.accumulate
        self.validation = validation_batches(info, config)
        self.held_out = HeldOut(self.validation, mixed, config, self.devices, model)
        self.unigram = unigram_of(info, self.validation, model)
        stable = last_stable_step(config)
        checkpoints.last_stable_step = stable
        self.checkpoints = checkpoints
        self.kept = KeptPresets(
            model,
            self.output / "presets",
            config.keeps,
            self.devices,
            also=stable and stable // config.interval * config.interval,
        )
        self.all_trained = model.trainable_variables
        self.loss_weights = model.loss_weights
        self.before = None
        return model

    def announce(self):
        config, info = self.config, self.examples.info
        text = report.banner(
            config, self.model, self.examples, self.output, self.devices
        )
        print(text, flush=True)
        if config.sequence_length > info.max_length and not config.fill_rows:
            print(
                f"Warning: the examples of {self.examples_are} have {info.max_length} "
                "tokens at most; the rest of --sequence_length "
                f"{config.sequence_length} is padding, which costs as much as text. "
                "With --fill_rows it is text.",
                file=sys.stderr,
            )

    def phases(self):
        return phases_of(self.config)

    def enter(self, phase):
        enter(phase, self.model, self.all_trained, self.loss_weights)
        compile_model(self.model, self.config, self.devices.strategy, phase)
        resume(self.model, self.config, self.checkpoints)
        if self.config.init_from and self.before is None:
            self.before = self.validate_before()

    def batches(self, step):
        info, mixed = self.examples
        return training_batches(info, self.config, step, self.devices, mixed)

    def validate(self, model):
        return self.held_out.validate(model)

    def followed(self, phase, first_step):
        config, objectives = self.config, self.model.objectives
        warnings = functools.partial(
            objectives.warnings, unigram=self.unigram, networks=phase.networks
        )
        # A phase that trains some networks only has fewer FLOPs.
        peak = None if phase.networks else peak_flops(config.dtype)
        flops = report.step_flops(config, self.model)
        peak_of_all = peak and peak * len(self.devices.devices)
        return {
            "tokens_per_step": config.batch_size * config.sequence_length,
            "per_second": {"peak_fraction": flops / peak_of_all} if peak else {},
            "warnings": None if config.smoke else warnings,
            "judged_at": first_step + phase.steps if phase.networks else None,
            "vital": objectives.vital_metrics,
            "watch": CollapseWatch(
                self.model.collapse,
                first_step,
                warmup_of(phase, config),
                remedy_for(config),
            ),
            "listeners": [self.kept],
            "at_once": config.at_once or most_at_once(),
        }

    def memory_message(self, checkpoints):
        return of_pretraining(self.config, self.model, self.devices, checkpoints)

    def finish(self):
        model = self.model
        # With a moving average, the average is the result (a finished run's checkpoint
        # holds both).
        model.optimizer.finalize_variable_values(model.trainable_variables)
        metrics = without_prefix(self.held_out.validate(model))
        examples = model.describe_examples(report.first_examples(self.validation))
        self.devices.in_all_processes(
            lambda: self.leave(metrics, examples), first_only=True
        )

    def leave(self, metrics, examples):
        """Saves the preset and shows what the run came to.

        Args:
            metrics: Dict. Metric -> its value on the held-out examples.
            examples: Lines that show held-out examples.
        """
        model, output = self.model, self.output
        model.save_to_preset(output / "preset")
        if self.before:
            write_whole(output / AFTER_FILE, json.dumps(metrics, indent=2) + "\n")
        rows = read_metrics(output / "metrics.csv")
        if rows:
            baselines = model.objectives.baselines(metrics, self.unigram)
            report.draw_curves(rows, output / "curves.png", baselines)
        mixed = [other.name for other in self.examples.mixed]
        print("\n" + report.table(model, metrics, self.unigram, mixed, self.before))
        if examples:
            print(f"\nValidation examples ({model.objectives.examples_legend}):")
        for text in examples:
            print(f"  {text}")
        print(f"\nCurves: {output / 'curves.png'}   Model: {output / 'preset'}")

    def validate_before(self):
        """Returns the metrics of the model before the first update; keeps them."""
        devices, path = self.devices, self.output / BEFORE_FILE
        if devices.any(devices.first and not path.exists()):
            metrics = without_prefix(self.held_out.validate(self.model))
            text = json.dumps(metrics, indent=2) + "\n"
            devices.in_all_processes(lambda: write_whole(path, text), first_only=True)
            return metrics
        return json.loads(path.read_text()) if devices.first else {}


def trial_model(config):
    """Returns a model with the configuration's options, as small as they allow."""
    presets = config.model_class.presets
    preset = "tiny" if "tiny" in presets else next(iter(presets))
    resized = any(isinstance(value, dict) for value in config.objective.values())
    if resized and config.preset in presets:
        preset = config.preset
    make = functools.partial(
        config.model_class.from_preset, name="trial", **config.objective
    )
    try:
        return make(preset)
    except ValueError:
        if preset == config.preset or config.preset not in presets:
            raise
        return make(config.preset)  # which may have more layers, or heads


def check_metric_names(model):
    """Raises a `ValueError` if the closing table would name metrics that are none."""
    names = {metric.name for metric in model.metrics}
    unknown = model.objectives.metric_names.keys() - names
    if unknown:
        raise ValueError(
            f"{type(model).__name__}'s objectives have the metric_names "
            f"{', '.join(sorted(unknown))}, which are no metrics of the model."
        )


def check_batch_size(config, model):
    """Raises a `ValueError` for batches too small for what a model learns from."""
    if config.batch_size // config.accumulate < model.smallest_batch:
        raise ValueError(
            f"--batch_size {config.batch_size} (over --accumulate {config.accumulate}) "
            f"is less than the {model.smallest_batch} sequences that "
            f"{type(model).__name__} compares with each other. Raise it."
        )


def check_rows(config, model):
    """Raises a `ValueError` if a model that reads one text a row is to read several."""
    if config.fill_rows and model.one_text_a_row:
        raise ValueError(
            f"--fill_rows puts several texts into a row, and {type(model).__name__} "
            "compares rows by their first token. Leave it out, or leave out what "
            "compares rows, such as CocoLM's sequence_task."
        )


def unigram_of(info, validation, model):
    """Returns the unigram baseline's loss and accuracy on the validation examples."""
    examples = list(validation)
    token_ids, padding_mask = (
        np.concatenate([batch[name] for batch in examples])
        for name in ("token_ids", "padding_mask")
    )
    return unigram_baseline(
        info.unigrams(),
        token_ids,
        padding_mask,
        model.unmaskable_ids,
        (model.tokenizer.classify_id, model.tokenizer.separate_id),
    )
