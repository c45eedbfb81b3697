"""The run of a recipe: from a corpus to a preset, continued where it was left."""

import argparse
import contextlib
import fcntl
import json
import os
import sys
from pathlib import Path

import keras
import numpy as np
import tyro

import keras_corrupt
from keras_corrupt import tokenizers
from keras_corrupt.data import load_dataset_info, make_dataset, prepare_dataset
from keras_corrupt.devices import distribution
from keras_corrupt.devices.accelerators import accelerators
from keras_corrupt.evaluation.baselines import unigram_baseline
from keras_corrupt.evaluation.show import corrupted_examples
from keras_corrupt.models import preset_directory
from keras_corrupt.training import report
from keras_corrupt.training.callbacks import (
    Intervals,
    NonFiniteLossError,
    Progress,
    RunLog,
    Warnings,
    read_metrics,
    validate,
)
from keras_corrupt.training.checkpoint import CheckpointError, Checkpoints
from keras_corrupt.training.config import PretrainConfig
from keras_corrupt.training.optimizer import AdamW
from keras_corrupt.training.schedules import WarmupLinearDecay


def main(recipe, description, **variants):
    """Runs a recipe from the command line.

    Args:
        recipe: The recipe's `PretrainConfig`; its fields become flags, its values
            their defaults.
        description: Help text, the recipe's docstring.
        variants: The recipe's other settings by name; `--variant NAME` takes them as
            the defaults instead.
    """
    flags = None
    if variants:
        # Read before the other flags, whose defaults it decides.
        parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
        parser.add_argument("--variant", choices=list(variants))
        chosen, flags = parser.parse_known_args()
        recipe = variants.get(chosen.variant, recipe)
    config = tyro.cli(
        PretrainConfig, args=flags, default=recipe, description=description
    )
    tokens, usual = (c.batch_size * c.sequence_length for c in (config, recipe))
    if tokens < usual / 4 and not config.smoke:
        print(
            f"Warning: {tokens:,} tokens a step are far fewer than the recipe's "
            f"{usual:,}, for which its learning rate was chosen. If memory is short, "
            "keep --batch_size and raise --accumulate.",
            file=sys.stderr,
        )
    try:
        if pretrain(config) is None:
            sys.exit(130)  # a shell's code for Ctrl-C: what follows should not run
    except (ValueError, CheckpointError, NonFiniteLossError, OSError) as error:
        sys.exit(f"Error: {error}")
    except distribution.LostProcessError as error:
        print(f"Error: {error}", file=sys.stderr, flush=True)
        os._exit(1)  # an orderly end would wait for the lost process


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
        CheckpointError: A checkpoint could not be written or read.
        LostProcessError: Another process of the run ended.
    """
    if config.smoke:
        config = config.shrunk()
    cls = getattr(keras_corrupt.models, config.model)
    config.check(cls.presets)
    devices = distribution.choose(config)
    # An option that the model refuses shows now, not after the data are prepared.
    cls.from_preset("tiny", name="trial", **config.objective)
    output = Path(config.output)
    with contextlib.ExitStack() as stack:
        stack.enter_context(devices.scope())
        devices.together(
            lambda: stack.enter_context(claimed(output, config)), first_only=True
        )
        return run(config, cls, output, devices)


def run(config, cls, output, devices):
    """Does what `pretrain` says, in the directory that is its own."""
    keras.utils.set_random_seed(config.seed)
    model, info = build(config, cls, output, devices)
    validation = batches_of(info, "validation", config)
    validation = validation.take(config.validation_batches).cache()
    held_out = devices.share(validation, config.batch_size // config.accumulate)
    unigram = unigram_of(info, validation, model)
    if devices.first:
        print(report.banner(config, model, info, output, devices), flush=True)

    compile_model(model, config, devices.strategy)
    checkpoints = Checkpoints(output / "checkpoints", distribution=devices)
    while (step := checkpoints.restore(model)) < config.steps:
        callbacks, listeners = [], []
        if devices.first:
            if step:
                print(f"Continuing at step {step:,}.", flush=True)
            progress = Progress(step, config.steps, config.accumulate)
            log = RunLog(output, step, config.batch_size * config.sequence_length)
            callbacks = [progress, log]
            listeners = [log, Warnings(config.steps, unigram[0])]
        intervals = Intervals(
            checkpoints, step, config.accumulate, held_out, listeners, devices
        )
        batches = batches_of(info, "train", config, step, devices)
        train(model, config, batches, step, [*callbacks, intervals])
        if intervals.stopped:
            if devices.first:
                print(
                    f"\nStopped and saved at step {intervals.step:,}. Run the same "
                    "command again to continue."
                )
            return None
    # With a moving average, the average is the result (a finished run's checkpoint
    # holds both).
    model.optimizer.finalize_variable_values(model.trainable_variables)
    metrics = validate(model, held_out)
    examples = corrupted_examples(model, report.first_examples(validation))
    devices.together(
        lambda: finish(output, model, metrics, unigram, examples), first_only=True
    )
    return model


def train(model, config, batches, step, callbacks):
    """Trains from `step` on: to the end, or to the end of a broken interval."""
    # A run that was stopped within an interval first completes that one.
    stop = min(config.steps, (step // config.interval + 1) * config.interval)
    whole = stop - step == config.interval
    try:
        model.fit(
            batches,
            steps_per_epoch=(stop - step) * config.accumulate,
            epochs=(config.steps - step) // config.interval if whole else 1,
            callbacks=callbacks,
            verbose=0,
            shuffle=False,
        )
    finally:
        for callback in callbacks:
            callback.release()  # Keras does not when training fails


def batches_of(info, split, config, step=0, devices=distribution.ALONE):
    """Returns the batches of a split, this process's part, from update `step` on."""
    return make_dataset(
        info.directory,
        split,
        batch_size=config.batch_size // config.accumulate,
        max_length=config.sequence_length,
        seed=config.seed,
        start_step=step * config.accumulate,
        num_hosts=devices.processes,
        host=devices.process,
    )


@contextlib.contextmanager
def claimed(output, config):
    """Makes `output` this run's directory, or checks that it is already.

    No other run can have it meanwhile. If what is done within fails before it wrote
    anything, the directory goes again.
    """
    path = output / "run.json"
    if output.exists() and not path.exists():
        if not output.is_dir() or any(output.iterdir()):
            raise ValueError(
                f"--output {output} exists and is not the directory of a run. Choose "
                "a new one."
            )
    output.mkdir(parents=True, exist_ok=True)
    with locked(output):
        asked = {**config.as_dict(), "backend": keras.backend.backend()}
        if path.exists():
            # Runs begun when there was one kind of vocabulary do not name it.
            was = {"tokenizer": type(config).tokenizer, **json.loads(path.read_text())}
            check_same_run(output, was, asked)
        else:
            path.with_suffix(".tmp").write_text(json.dumps(asked, indent=2) + "\n")
            path.with_suffix(".tmp").replace(path)
        try:
            yield
        except BaseException:
            if list(output.iterdir()) == [path]:
                path.unlink()
                output.rmdir()
            raise


@contextlib.contextmanager
def locked(directory):
    """Keeps other processes out of `directory`, where its file system can."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise ValueError(
            f"Another process is training in {directory}. Choose another --output, or "
            "stop that one."
        ) from None
    except OSError:  # a file system without locks
        pass
    try:
        yield
    finally:
        os.close(descriptor)


def check_same_run(output, was, asked):
    """Raises a `ValueError` that lists the settings which are not as they were."""
    differences = [
        f"{name}: was {was.get(name)!r}, asked {asked.get(name)!r}"
        for name in sorted(was.keys() | asked.keys())
        if was.get(name) != asked.get(name)
    ]
    if differences:
        raise ValueError(
            f"{output} holds a run with other settings:\n  "
            + "\n  ".join(differences)
            + "\nRepeat its settings to continue it, choose another --output, or "
            "delete it."
        )


def build(config, cls, output, devices):
    """Returns the model and the `DatasetInfo` of its examples."""
    # One process that lacks the data must not leave the others waiting for it.
    info = devices.together(lambda: prepare(config, cls, output))
    saved = tokenizers.load(info.directory)
    options = {"seed": config.seed, "dtype": config.dtype, **config.objective}
    if config.init_from:
        model = cls.from_preset(config.init_from, **options)
        if model.tokenizer is None:
            model.tokenizer = saved
    else:
        size = {cls.main_network: {"vocabulary_size": saved.vocabulary_size}}
        model = cls.from_preset(config.preset, tokenizer=saved, **size, **options)
    return model, info


def prepare(config, cls, output):
    """Checks `--init_from`; finds or makes the examples: returns a `DatasetInfo`."""
    tokenizer, kind, vocabulary = None, config.tokenizer, config.vocabulary
    flags = {
        "lowercase": config.lowercase,
        "strip_accents": config.strip_accents,
        "language_neutral": config.language_neutral,
    }
    if config.init_from:
        start, tokenizer = preset_directory.read(config.init_from, cls)
        if tokenizer is not None:
            kind, flags = tokenizer.kind, tokenizer.flags
            vocabulary = Path(config.init_from) / "tokenizer.json"
        positions = start[cls.main_network]["max_length"]
        if config.sequence_length > positions:
            raise ValueError(
                f"--sequence_length {config.sequence_length} is longer than the "
                f"{positions} positions of --init_from {config.init_from}."
            )
    if config.data:
        info = load_dataset_info(config.data)
    else:
        info = prepare_dataset(
            config.corpus,
            output / "data",
            vocabulary=vocabulary,
            tokenizer=kind,
            vocabulary_size=config.vocabulary_size,
            max_length=config.sequence_length,
            validation_fraction=config.validation_fraction,
            seed=config.seed,
            workers=config.workers or os.cpu_count(),
            on_bad_bytes=config.on_bad_bytes,
            **flags,
        )
    saved = tokenizers.load(info.directory)
    if tokenizer is not None and tokenizer.fingerprint != saved.fingerprint:
        raise ValueError(
            f"--data {config.data} was made with another vocabulary than --init_from "
            f"{config.init_from}. Prepare it anew with {vocabulary}."
        )
    return info


def compile_model(model, config, strategy="none"):
    """Compiles `model` for training and makes the optimizer's variables."""
    schedule = WarmupLinearDecay(
        config.learning_rate, config.steps, config.warmup_steps
    )
    optimizer = AdamW(
        schedule,
        weight_decay=config.weight_decay,
        beta_1=config.beta_1,
        beta_2=config.beta_2,
        epsilon=config.epsilon,
        bias_correction=config.bias_correction,
        global_clipnorm=config.clip_norm or None,
        gradient_accumulation_steps=config.accumulate
        if config.accumulate > 1
        else None,
        use_ema=bool(config.ema),
        ema_momentum=config.ema or 0.99,
    )
    model.compile(optimizer=optimizer, jit_compile=xla_pays(strategy))
    optimizer.build(model.trainable_variables)


def xla_pays(strategy="none"):
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
        info.unigrams(), token_ids, padding_mask, model.unmaskable_ids
    )


def finish(output, model, metrics, unigram, examples):
    """Saves the preset and shows what the run came to."""
    model.save_to_preset(output / "preset")
    rows = read_metrics(output / "metrics.csv")
    report.draw_curves(rows, output / "curves.png", unigram[0])
    print("\n" + report.table(metrics, unigram, model.chance))
    print(
        "\nValidation examples ([original > replacement p]: replaced, and the "
        "discriminator's\nprobability of that; <token p>: wrongly suspected):"
        if "val_rtd_auc" in metrics
        else "\nValidation examples ([original: prediction]):"
    )
    for text in examples:
        print(f"  {text}")
    print(f"\nCurves: {output / 'curves.png'}   Model: {output / 'preset'}")
