"""Runs at a constant rate up to a last decay, which other runs can go on from.

Before its decay such a run is the beginning of every longer run, and of runs that decay
on other examples. So its state there is kept, and a new run can take it over.
"""

from pathlib import Path

from keras_corrupt.training.checkpoint import Checkpoints
from keras_corrupt.training.phases import phases_of, warmup_of
from keras_corrupt.training.run_directory import EXAMPLES, settings_in
from keras_corrupt.training.schedules import WarmupLinearDecay, WarmupStableDecay

#: `--schedule` of such a run.
STABLE = "stable"


def schedule_of(phase, config):
    """Returns the learning-rate schedule of a phase, in a run of a `PretrainConfig`."""
    rate = config.learning_rate if phase.learning_rate is None else phase.learning_rate
    warmup = warmup_of(phase, config)
    if config.schedule == STABLE:
        decay_steps = phase.steps - decay_begins(config.steps, config.decay_steps)
        return WarmupStableDecay(rate, phase.steps, warmup, decay_steps)
    return WarmupLinearDecay(rate, phase.steps, warmup)


def decay_begins(steps, decay_steps):
    """Returns the updates before a decay, which by default is the last tenth."""
    return steps - (max(1, steps // 10) if decay_steps is None else decay_steps)


def last_stable_step(config):
    """Returns the updates before a run's decay, or `None` if its rate always falls."""
    if config.schedule != STABLE:
        return None
    return decay_begins(config.steps, config.decay_steps)


def check_stable(config):
    """Raises a `ValueError` for a schedule that cannot be.

    Args:
        config: A `PretrainConfig`.
    """
    begin = last_stable_step(config)
    if begin is None:
        for name in ("decay_steps", "resume_from"):
            if (value := getattr(config, name)) is not None:
                raise ValueError(
                    f"--{name} {value} needs --schedule {STABLE}: with --schedule "
                    f"{config.schedule} the rate falls from the warm-up on."
                )
        return
    if len(phases_of(config)) > 1:
        raise ValueError(
            f"--schedule {STABLE} cannot be used in a run of several phases. Take "
            "--schedule linear, or leave out --generator_steps."
        )
    if config.warmup_steps > begin:
        raise ValueError(
            f"--warmup_steps {config.warmup_steps} and a decay of "
            f"{config.steps - begin} steps are more than --steps {config.steps}. Lower "
            "one of them."
        )


def check_resumed(config):
    """Raises a `ValueError` if a run cannot begin with the state of `resume_from`.

    Args:
        config: A `PretrainConfig`.
    """
    if config.resume_from is None or _checkpoints(config.output).steps():
        return
    run, begin = config.resume_from, last_stable_step(config)
    stable = _settings(run)["stable"]
    steps = [step for step in _checkpoints(run).steps() if step <= stable]
    if not steps:
        raise ValueError(
            f"--resume_from {run}: it has no checkpoint of the steps before its decay."
        )
    if begin < steps[-1]:
        raise ValueError(
            f"--resume_from {run} has done {steps[-1]} steps before its decay, and "
            f"this run has {begin}. Raise --steps, or lower --decay_steps."
        )
    if not (config.data or config.vocabulary or config.init_from):
        raise ValueError(
            f"--resume_from {run} needs the vocabulary of that run: give its examples "
            "as --data, or its tokenizer.json as --vocabulary."
        )


def check_same_vocabulary(config, fingerprint):
    """Raises a `ValueError` if examples have another vocabulary than `resume_from`.

    Args:
        config: A `PretrainConfig`.
        fingerprint: The vocabulary's, of the examples.
    """
    if config.resume_from is None or _checkpoints(config.output).steps():
        return
    if _settings(config.resume_from)["vocabulary"] != fingerprint:
        raise ValueError(
            f"--resume_from {config.resume_from} had another vocabulary than these "
            "examples. Give its tokenizer.json as --vocabulary."
        )


def resume(model, config, checkpoints):
    """Begins a run with the state of `resume_from` before its decay, once.

    Args:
        model: The model, compiled.
        config: A `PretrainConfig`.
        checkpoints: The run's own `Checkpoints`, which get that state first.
    """
    devices, run = checkpoints.distribution, config.resume_from
    begun = devices.first and bool(checkpoints.steps())
    if run is None or devices.any(begun):
        return
    stable = _settings(run)["stable"] if devices.first else 0
    step = _checkpoints(run, distribution=devices).restore(model, up_to=stable)
    checkpoints.save(model, step)


def _checkpoints(run, **options):
    return Checkpoints(Path(run) / "checkpoints", **options)


def _settings(run):
    """Returns the last stable step of a run, and its vocabulary's fingerprint."""
    settings = (settings_in(Path(run)) if Path(run).is_dir() else None) or {}
    if settings.get("schedule") != STABLE or EXAMPLES not in settings:
        raise ValueError(
            f"--resume_from {run} is no directory of a run with --schedule {STABLE}. "
            "Start from the preset of another run with --init_from."
        )
    return {
        "stable": decay_begins(settings["steps"], settings["decay_steps"]),
        "vocabulary": settings[EXAMPLES]["vocabulary"],
    }
