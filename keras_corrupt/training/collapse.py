"""Runs whose model dies: how one sees it, what stops, and how the run goes on."""

import dataclasses
import functools
import json

import keras
import numpy as np
from keras import ops

from keras_corrupt.commands.frame import RunError
from keras_corrupt.devices.distribution import ONE_DEVICE
from keras_corrupt.encoders import TextModel
from keras_corrupt.encoders.token_spread import token_spread
from keras_corrupt.files.whole import write_whole
from keras_corrupt.training.callbacks import without_prefix
from keras_corrupt.training.checkpoint import Checkpoints
from keras_corrupt.training.run_directory import (
    RECOVERIES,
    RUN_FILE,
    settings_in,
)

#: How often a run goes back to where its model was alive.
MOST_RECOVERIES = 3
#: Updates before which nothing is judged. A detector that lives begins with states that
#: are nearly one, for 100 to 250 updates: see benchmarks/results/collapse.
FIRST_JUDGED = 1000


class CollapseError(RunError):
    """The model has died.

    Args:
        step: Updates after which it was seen.
        why: A clause that says by what.
        remedy: What to do.
    """

    def __init__(self, step, why, remedy):
        super().__init__(
            f"The model is dead at step {step:,}: {why}. More steps do not bring it "
            f"back, and this step was not saved. {remedy}"
        )
        self.step, self.why = step, why


class TokenSpreads(TextModel):
    """Measures by `evaluate` the mean `token_spread` of texts, on any devices.

    Args:
        model: A `Pretrainer`.
        jit_compile: See `keras.Model.compile`.
    """

    def __init__(self, model, jit_compile="auto"):
        super().__init__()
        self.pretrainer = model
        self.spread = keras.metrics.Mean(name="token_spread")
        self.built = True
        self.compile(optimizer=None, jit_compile=jit_compile)

    def call(self, inputs, training=False):
        inputs = self.pretrainer.text_inputs(inputs)
        states = self.pretrainer.token_states(inputs)
        return token_spread(states, inputs["padding_mask"])

    def compute_loss(
        self, x=None, y=None, y_pred=None, sample_weight=None, training=False
    ):
        """Counts texts in; those that only fill up a batch have no tokens."""
        texts = ops.any(x["padding_mask"] > 0, axis=1)
        self.spread.update_state(y_pred, ops.cast(texts, "float32"))
        return ops.zeros(())

    def measure(self, batches):
        """Returns the mean over the first of some batches, a float."""
        metrics = self.evaluate(batches.take(1), return_dict=True, verbose=0)
        return float(metrics["token_spread"])


class CollapseWatch:
    """Stops a run whose model has died.

    Args:
        judge: Function of the validation metrics that returns by what one sees that
            the model has died, or an empty text.
        first_step: Updates before the phase of training.
        warmup_steps: Updates of its warm-up, in which nothing is judged.
        remedy: What the error says to do.
    """

    def __init__(self, judge, first_step, warmup_steps, remedy):
        self.judge, self.remedy = judge, remedy
        self.begin = first_step + max(warmup_steps, FIRST_JUDGED)

    def on_interval_end(self, step, logs):
        """Looks at the interval's metrics; called by `Intervals`.

        Raises:
            CollapseError: The model has died.
        """
        if step >= self.begin and (why := self.judge(without_prefix(logs))):
            raise CollapseError(step, why, self.remedy)


def remedy_for(config):
    """Returns what to change in a run whose model has died, a few sentences.

    Args:
        config: Its `PretrainConfig`.
    """
    changes = [] if config.beta_2 <= 0.98 else ["--beta_2 0.98"]
    changes += [
        f"a lower --learning_rate than {config.learning_rate:g}",
        f"a longer warm-up than --warmup_steps {config.warmup_steps:,}",
    ]
    remedy = f"Run with another --output and {' or '.join(changes)}."
    if config.recover:
        return f"It has gone back {MOST_RECOVERIES} times. {remedy}"
    return (
        f"{remedy} Or add --recover to this command: it goes on from the last "
        "checkpoint, or anew if there is none, with half the rate."
    )


# === Recovery ===


def recovering(train, config, output, devices=ONE_DEVICE):
    """Trains, and goes back to the last checkpoint where the model dies.

    `run.json` tells of each return, so that the run goes on in the same way after it
    was stopped.

    Args:
        train: Function of the configuration that continues the run.
        config: A `PretrainConfig`.
        output: The run's directory, a `Path`.
        devices: The run's `Distribution`.

    Returns:
        What `train` returns.

    Raises:
        CollapseError: The model died, and the run may not go back, or has done so
            too often.
    """
    while True:
        counts = {"done": np.int32(len(recoveries(output)) if devices.first else 0)}
        count = int(devices.from_first(counts)["done"])
        try:
            return train(slowed(config, 2**count))
        except CollapseError as error:
            if not config.recover or count == MOST_RECOVERIES:
                raise
            tell = functools.partial(record, output, error.step, error.why)
        devices.in_all_processes(tell, first_only=True)


def slowed(config, divisor):
    """Returns a `PretrainConfig` with its learning rates divided."""
    phases = (
        phase
        if phase.learning_rate is None
        else dataclasses.replace(phase, learning_rate=phase.learning_rate / divisor)
        for phase in config.phases
    )
    rate = config.learning_rate / divisor
    return dataclasses.replace(config, learning_rate=rate, phases=tuple(phases))


def recoveries(output):
    """Returns the recoveries of the run in a directory, a list of dicts."""
    return settings_in(output).get(RECOVERIES, [])


def record(output, step, why):
    """Adds to `run.json` that the run goes back, and tells it.

    Args:
        output: The run's directory, a `Path`.
        step: Updates after which the model was dead.
        why: By what one saw it.
    """
    settings = settings_in(output)
    back_to = Checkpoints(output / "checkpoints").steps()[-1:] or [0]
    recovery = {"dead_at": step, "why": why, "back_to": back_to[0]}
    recorded = settings.setdefault(RECOVERIES, [])
    recorded.append(recovery)
    write_whole(output / RUN_FILE, json.dumps(settings, indent=2) + "\n")
    print(
        f"\nThe model is dead at step {step:,}: {why}. The run goes back to step "
        f"{back_to[0]:,}, with 1/{2 ** len(recorded)} of its learning rate "
        f"(recovery {len(recorded)} of {MOST_RECOVERIES}).",
        flush=True,
    )
