"""One run, whatever it trains: its directory, its examples, its phases, its end."""

import contextlib
import hashlib
from pathlib import Path

import keras

from keras_corrupt.devices.distribution import ONE_DEVICE
from keras_corrupt.training import loop
from keras_corrupt.training.checkpoint import Checkpoints
from keras_corrupt.training.out_of_memory import memory_remedies
from keras_corrupt.training.phases import WHOLE_RUN, Phase
from keras_corrupt.training.run_directory import record_examples, run_directory
from keras_corrupt.training.trackers import following


class Run:
    """What a kind of run does when `drive` asks for it; a kind overrides what differs.

    Args:
        config: The run's settings: an object with `output`, `seed`, `steps`,
            `interval`, `wandb`, `mlflow` and `as_dict()`, which returns the settings
            that a continued run must agree with.
        callbacks: Keras callbacks of the user: see `loop.train`.

    Attributes:
        model: The model, once `build` has made it.
        uncompared: Names of settings that a continued run need not agree with.
        examples_are: What the examples are called in an error.
    """

    devices = ONE_DEVICE
    uncompared = ()
    examples_are = "This command"

    def __init__(self, config, callbacks=()):
        self.config, self.output = config, Path(config.output)
        self.callbacks = callbacks
        self.model = None

    def compared(self, settings):
        """Returns the part of some settings that a continued run must agree with."""
        return settings

    def attempt(self, once):
        """Calls `once` with the run; a kind may call it again with other settings."""
        return once(self)

    def read(self):
        """Reads or makes the examples: returns what they are -> fingerprint."""
        raise NotImplementedError

    def build(self, checkpoints):
        """Returns the model; `checkpoints` are the run's `Checkpoints`."""
        raise NotImplementedError

    def announce(self):
        """Prints the model, its examples and the cost of training."""
        raise NotImplementedError

    def phases(self):
        """Returns the run's `Phase`s."""
        return [Phase(WHOLE_RUN, self.config.steps)]

    def enter(self, phase):
        """Compiles the model for a `Phase`."""

    def batches(self, step):
        """Returns the batches from an update on: `Batches` without end."""
        raise NotImplementedError

    def validate(self, model):
        """Returns metrics of held-out examples; their names begin with `val_`."""
        raise NotImplementedError

    def followed(self, phase, first_step):
        """Returns the arguments of `loop.train` by which a phase is followed.

        Args:
            phase: The `Phase`.
            first_step: Updates before it.
        """
        return {}

    def memory_message(self, checkpoints):
        """Returns what the run says if memory does not suffice."""
        raise NotImplementedError

    def finish(self):
        """Saves the model, and shows what the run came to."""
        raise NotImplementedError


def drive(run):
    """Does a run, or continues it: the one way from settings to a trained model.

    Args:
        run: A `Run`.

    Returns:
        The model, or `None` if the user stopped the run.

    Raises:
        ValueError: The directory holds a run with other settings, or on other examples;
            nothing was changed.
        RunError: The run cannot go on: see its subclasses.
    """
    devices = run.devices
    settings = {**run.config.as_dict(), "backend": keras.backend.backend()}
    with contextlib.ExitStack() as stack:
        stack.enter_context(devices.scope())
        directory = run_directory(run.output, settings, run.compared, run.uncompared)
        devices.in_all_processes(
            lambda: stack.enter_context(directory), first_only=True
        )
        trackers = stack.enter_context(following(run.config, run.output, settings))
        return run.attempt(lambda run: _once(run, trackers))


def _once(run, trackers):
    """Does what `drive` says, in the directory of the run, followed by trackers."""
    config, devices = run.config, run.devices
    keras.utils.set_random_seed(config.seed)
    fingerprints = run.read()
    devices.in_all_processes(
        lambda: record_examples(run.output, fingerprints, run.examples_are),
        first_only=True,
    )
    checkpoints = Checkpoints(
        run.output / "checkpoints",
        distribution=devices,
        data=hashlib.sha256("\n".join(fingerprints.values()).encode()).hexdigest(),
    )
    run.model = run.build(checkpoints)
    if devices.first:
        run.announce()
    first_step = 0
    for phase in run.phases():
        run.enter(phase)
        with memory_remedies(run.memory_message, checkpoints):
            finished = loop.train(
                run.model,
                run.batches,
                run.validate,
                checkpoints,
                output=run.output,
                steps=first_step + phase.steps,
                interval=config.interval,
                first_step=first_step,
                start=phase.start and getattr(run.model, phase.start),
                total=config.steps,
                callbacks=run.callbacks,
                trackers=trackers,
                phase=phase.name,
                devices=devices,
                **run.followed(phase, first_step),
            )
        if not finished:
            return None
        first_step += phase.steps
    run.finish()
    return run.model
