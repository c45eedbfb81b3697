"""The run of a recipe: from a corpus to a preset, continued where it was left."""

import contextlib
import dataclasses
import functools
import json
import sys
from pathlib import Path

import keras
import numpy as np

from keras_corrupt.data import make_dataset, name_damage
from keras_corrupt.devices import compiled_programs, distribution, precision
from keras_corrupt.devices.accelerators import accelerators
from keras_corrupt.devices.many_updates import most_at_once
from keras_corrupt.files.whole import write_whole
from keras_corrupt.models.baselines import unigram_baseline
from keras_corrupt.presets.directory import content_hash
from keras_corrupt.training import loop, report
from keras_corrupt.training.callbacks import read_metrics, validate, without_prefix
from keras_corrupt.training.checkpoint import Checkpoints
from keras_corrupt.training.collapse import (
    CollapseWatch,
    TokenSpreads,
    recovering,
    remedy_for,
)
from keras_corrupt.training.config import PretrainConfig
from keras_corrupt.training.example_settings import EXAMPLE_SETTINGS, with_data
from keras_corrupt.training.kept_presets import KeptPresets
from keras_corrupt.training.optimizer import AdamW
from keras_corrupt.training.out_of_memory import (
    memory_remedies,
    of_pretraining,
)
from keras_corrupt.training.phases import (
    WHOLE_RUN,
    Phase,
    check_phases,
    enter,
    phases_of,
    warmup_of,
)
from keras_corrupt.training.run_directory import (
    record_examples,
    run_directory,
)
from keras_corrupt.training.schedules import WarmupLinearDecay
from keras_corrupt.training.starting import (
    build,
    check_start,
    is_prepared,
    prepare,
)

#: Validation metrics of the model that a run started from, and of what it came to.
BEFORE_FILE, AFTER_FILE = "before.json", "after.json"


def pretrain(config):
    """Prepares data, trains, evaluates and saves; continues what was begun.

    Args:
        config: A `PretrainConfig`.

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
    if config.dtype == "auto":
        config = dataclasses.replace(config, dtype=precision.fastest())
    devices = distribution.choose(config)
    compiled_programs.keep()
    # One process that lacks the data must not leave the others waiting for it.
    config = devices.in_all_processes(lambda: with_data(config))
    # An option that the model refuses shows now, not after the data are prepared.
    trial = trial_model(config)
    check_phases(config, trial)
    check_start(config, trial)
    check_metric_names(trial)
    check_batch_size(config, trial)
    output = Path(config.output)
    settings = {**config.as_dict(), "backend": keras.backend.backend()}
    with contextlib.ExitStack() as stack:
        stack.enter_context(devices.scope())
        devices.in_all_processes(
            lambda: stack.enter_context(
                run_directory(
                    output,
                    settings,
                    PretrainConfig.compared,
                    uncompared=(
                        "accumulate",
                        *(EXAMPLE_SETTINGS if config.data else ()),
                    ),
                )
            ),
            first_only=True,
        )
        where = f"--data {config.data}" if config.data else str(output / "data")
        for data in directories(config, output):
            stack.enter_context(name_damage(data))
        return recovering(
            lambda config: run(config, output, devices, where), config, output, devices
        )


def trial_model(config):
    """Returns a model with the configuration's options, as small as they allow."""
    presets = config.model_class.presets
    preset = "tiny" if "tiny" in presets else next(iter(presets))
    resized = any(isinstance(value, dict) for value in config.objective.values())
    if resized and config.preset in presets:
        preset = config.preset
    return config.model_class.from_preset(preset, name="trial", **config.objective)


def check_metric_names(model):
    """Raises a `ValueError` if the closing table would name metrics that are none."""
    known = {metric.name for metric in model.metrics}
    unknown = model.objectives.metric_names.keys() - known
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


def run(config, output, devices, where):
    """Does what `pretrain` says, in the directory that is its own.

    Args:
        config: A `PretrainConfig`.
        output: The directory, a `Path`.
        devices: The run's `Distribution`.
        where: The examples, in the words of the command line.
    """
    keras.utils.set_random_seed(config.seed)
    info, mixed = examples = devices.in_all_processes(lambda: prepare(config, output))
    fingerprints = examples.fingerprints
    if config.init_from:
        fingerprints |= {"--init_from": content_hash(config.init_from)}
    devices.in_all_processes(
        lambda: record_examples(output, fingerprints, where), first_only=True
    )
    model = build(config, info)
    model.micro_batches = config.accumulate
    validation = validation_batches(info, config)
    held_out = HeldOut(validation, mixed, config, devices, model)
    unigram = unigram_of(info, validation, model)
    if devices.first:
        print(report.banner(config, model, examples, output, devices), flush=True)
        if config.sequence_length > info.max_length:
            print(
                f"Warning: the examples of {where} have {info.max_length} tokens at "
                f"most; the rest of --sequence_length {config.sequence_length} is "
                "padding, which costs as much as text.",
                file=sys.stderr,
            )

    checkpoints = Checkpoints(
        output / "checkpoints", distribution=devices, data=examples.fingerprint
    )
    kept = KeptPresets(model, output / "presets", config.keep_presets, devices)
    trainable, loss_weights = model.trainable_variables, model.loss_weights
    first_step, before = 0, None
    for phase in phases_of(config):
        enter(phase, model, trainable, loss_weights)
        compile_model(model, config, devices.strategy, phase)
        if config.init_from and not before:
            before = validate_before(model, held_out, output, devices)
        with memory_remedies(of_pretraining, config, model, devices, checkpoints):
            finished = loop.train(
                model,
                lambda step: training_batches(info, config, step, devices, mixed),
                held_out.validate,
                checkpoints,
                output=output,
                steps=first_step + phase.steps,
                interval=config.interval,
                first_step=first_step,
                start=phase.start and getattr(model, phase.start),
                total=config.steps,
                tokens_per_step=config.batch_size * config.sequence_length,
                warnings=None
                if config.smoke
                else functools.partial(
                    model.objectives.warnings, unigram=unigram, networks=phase.networks
                ),
                judged_at=first_step + phase.steps if phase.networks else None,
                vital=model.objectives.vital_metrics,
                watch=CollapseWatch(
                    model.collapse,
                    first_step,
                    warmup_of(phase, config),
                    remedy_for(config),
                ),
                listeners=[kept],
                phase=phase.name,
                devices=devices,
                at_once=config.at_once or most_at_once(),
            )
        if not finished:
            return None
        first_step += phase.steps
    # With a moving average, the average is the result (a finished run's checkpoint
    # holds both).
    model.optimizer.finalize_variable_values(model.trainable_variables)
    metrics = without_prefix(held_out.validate(model))
    described = model.describe_examples(report.first_examples(validation))
    names = [other.name for other in mixed]
    devices.in_all_processes(
        lambda: finish(output, model, metrics, unigram, described, names, before),
        first_only=True,
    )
    return model


class HeldOut:
    """The held-out examples of the corpus and of those that are mixed in.

    Args:
        validation: Batches of the corpus.
        mixed: A list of `Mixed`.
        config: A `PretrainConfig`.
        devices: The run's `Distribution`.
        model: The model of the run.
    """

    def __init__(self, validation, mixed, config, devices, model):
        self.spreads = TokenSpreads(model, compiles_with_xla(devices.strategy))
        size = config.batch_size // config.accumulate
        self.own = devices.part_of(validation, size)
        self.others = []
        for other in mixed:
            batches = validation_batches(other.info, config)
            self.others.append(devices.part_of(batches, size))

    def validate(self, model):
        """Returns the model's metrics; those on mixed corpora as `val_mix_1_...`."""
        metrics = validate(model, self.own)
        metrics["val_token_spread"] = self.spreads.measure(self.own)
        for number, batches in enumerate(self.others, 1):
            found = without_prefix(validate(model, batches))
            metrics |= {f"val_mix_{number}_{name}": v for name, v in found.items()}
        return metrics


def validate_before(model, held_out, output, devices):
    """Returns the metrics of the model that a run starts from; they are kept.

    Args:
        model: It, as it is before the first update.
        held_out: The `HeldOut` examples.
        output: The run's directory, a `Path`.
        devices: The run's `Distribution`.
    """
    path = output / BEFORE_FILE
    if devices.any(devices.first and not path.exists()):
        metrics = without_prefix(held_out.validate(model))
        text = json.dumps(metrics, indent=2) + "\n"
        devices.in_all_processes(lambda: write_whole(path, text), first_only=True)
        return metrics
    return json.loads(path.read_text()) if devices.first else {}


def directories(config, output):
    """Returns where a run's examples are: those of the corpus and the mixed ones."""
    yield config.data or output / "data"
    for number, (name, _) in enumerate(config.mix, 1):
        yield name if is_prepared(name) else output / f"mix_{number}"


def training_batches(info, config, step, devices, mixed):
    """Returns the batches, this process's part, from update `step` on."""
    return make_dataset(
        info.directory,
        "train",
        batch_size=config.batch_size,
        max_length=config.sequence_length,
        seed=config.seed,
        start_step=step,
        num_hosts=devices.processes,
        host=devices.process,
        mix=[(other.info.directory, other.fraction) for other in mixed],
    )


def validation_batches(info, config):
    """Returns the held-out batches, of the size that goes through the model at once."""
    batches = make_dataset(
        info.directory,
        "validation",
        batch_size=config.batch_size // config.accumulate,
        max_length=config.sequence_length,
        seed=config.seed,
    )
    return batches.take(config.validation_batches * config.accumulate).cache()


def compile_model(model, config, strategy="none", phase=None):
    """Compiles `model` for training and makes the optimizer's variables.

    Args:
        model: The model.
        config: A `PretrainConfig`.
        strategy: The `Distribution`'s strategy.
        phase: The `Phase` to train; the whole run if not given.
    """
    phase = phase or Phase(WHOLE_RUN, config.steps)
    rate = phase.learning_rate
    schedule = WarmupLinearDecay(
        config.learning_rate if rate is None else rate,
        phase.steps,
        warmup_of(phase, config),
    )
    optimizer = AdamW(
        schedule,
        weight_decay=config.weight_decay,
        beta_1=config.beta_1,
        beta_2=config.beta_2,
        epsilon=config.epsilon,
        bias_correction=config.bias_correction,
        global_clipnorm=config.clip_norm or None,
        use_ema=bool(config.ema),
        ema_momentum=config.ema or 0.99,
    )
    model.compile(optimizer=optimizer, jit_compile=compiles_with_xla(strategy))
    optimizer.build(model.trainable_variables)


def compiles_with_xla(strategy="none"):
    """Whether to compile whole steps.

    Not on CPUs, where TensorFlow is faster, nor under its strategies, whose steps span
    several devices.
    """
    if strategy in ("mirrored", "tpu"):
        return False
    return keras.backend.backend() != "tensorflow" or bool(accelerators())


def unigram_of(info, validation, model):
    """Returns the unigram baseline's loss and accuracy on the validation examples."""
    examples = [{k: np.array(v) for k, v in batch.items()} for batch in validation]
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


def finish(output, model, metrics, unigram, examples, mixed, before):
    """Saves the preset and shows what the run came to."""
    model.save_to_preset(output / "preset")
    if before:
        write_whole(output / AFTER_FILE, json.dumps(metrics, indent=2) + "\n")
    rows = read_metrics(output / "metrics.csv")
    baselines = model.objectives.baselines(metrics, unigram)
    if rows:
        report.draw_curves(rows, output / "curves.png", baselines)
    print("\n" + report.table(model, metrics, unigram, mixed, before))
    if examples:
        print(f"\nValidation examples ({model.objectives.examples_legend}):")
    for text in examples:
        print(f"  {text}")
    print(f"\nCurves: {output / 'curves.png'}   Model: {output / 'preset'}")
