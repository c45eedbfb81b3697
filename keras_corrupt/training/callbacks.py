"""Callbacks of a run: progress, logs, checkpoints, warnings, stopping."""

import csv
import io
import math
import signal
import sys
import time

import keras
import numpy as np
from keras import ops

from keras_corrupt.commands.frame import RunError
from keras_corrupt.devices.distribution import ONE_DEVICE
from keras_corrupt.files.whole import write_whole
from keras_corrupt.training.event_file import EventFile
from keras_corrupt.training.phases import WHOLE_RUN

#: The attribute of an optimizer that is the norm of its last gradient, and its metric.
GRADIENT_NORM = "gradient_norm"

#: Updates after which several processes ask one another whether to stop.
STEPS_BETWEEN_QUESTIONS = 10


class NonFiniteLossError(RunError):
    """The loss became infinite or not a number."""


class Progress(keras.callbacks.Callback):
    """A progress bar over the whole run, with every loss term.

    Args:
        step: Updates done before.
        total: Updates of the whole run.
        vital: Names of validation metrics, whose last values it shows, too.
    """

    def __init__(self, step, total, vital=()):
        super().__init__()
        self.step, self.total = step, total
        self.first_step = step  # of the epoch
        self.vital, self.last = (GRADIENT_NORM, *vital), {}
        self.bar = None

    def on_train_begin(self, logs=None):
        from tqdm import tqdm

        terminal = sys.stderr.isatty()
        self.bar = tqdm(
            initial=self.step,
            total=self.total,
            unit="step",
            # A log file gets a line every half a minute, not one every step.
            mininterval=1.0 if terminal else 30.0,
            dynamic_ncols=terminal,
        )

    def on_epoch_begin(self, epoch, logs=None):
        self.first_step = self.bar.n

    def on_train_batch_end(self, batch, logs=None):
        if self.bar.n == self.step:
            self.bar.unpause()  # to compile is no sign of how long a step takes
        if self.bar.update(self.first_step + batch + 1 - self.bar.n) and logs:
            terms = {k: f"{float(v):.3f}" for k, v in logs.items() if "loss" in k}
            self.bar.set_postfix(terms | self.last, refresh=False)

    def on_interval_end(self, step, logs):
        """Learns an interval's metrics; called by `Intervals`."""
        logs = logs | without_prefix(logs)
        self.last = {n: f"{logs[n]:.3f}" for n in self.vital if n in logs}

    def tell(self, text):
        """Writes a line above the bar."""
        self.bar.write(text)

    def release(self):
        """Ends the bar."""
        if self.bar:
            self.bar.close()


class RunLog(keras.callbacks.Callback):
    """Writes the metrics of each interval to `metrics.csv` and to TensorBoard.

    Args:
        directory: The run's directory.
        step: Updates done before; later rows of an earlier attempt are dropped.
        tokens_per_step: Token slots in an update.
        trackers: `Tracker`s, which get the rows, too.
        per_second: Name -> the amount that an update adds to a quantity; the rows have
            the amount that a second of training adds.
    """

    def __init__(self, directory, step, tokens_per_step, trackers=(), per_second=()):
        super().__init__()
        self.path = directory / "metrics.csv"
        self.events = directory / "tensorboard"
        self.tokens_per_step = tokens_per_step
        self.trackers = trackers
        self.per_second = {"tokens_per_second": tokens_per_step, **dict(per_second)}
        self.writer = None
        self.rows = [row for row in read_metrics(self.path) if row["step"] <= step]
        self.seconds = self.rows[-1]["seconds"] if self.rows else 0.0

    def on_train_begin(self, logs=None):
        self.writer = EventFile(self.events)
        self.started = time.monotonic()
        for tracker in self.trackers:
            tracker.start()

    def on_epoch_begin(self, epoch, logs=None):
        self.began = time.monotonic()

    def on_epoch_end(self, epoch, logs=None):
        # Before `Intervals` validates.
        self.updates_per_second = self.params["steps"] / (time.monotonic() - self.began)

    def on_interval_end(self, step, logs):
        """Adds a row; called by `Intervals`."""
        seconds = self.seconds + time.monotonic() - self.started
        row = {
            "step": step,
            "tokens": step * self.tokens_per_step,
            "seconds": round(seconds, 1),
            **{n: v * self.updates_per_second for n, v in self.per_second.items()},
            "learning_rate": logs["learning_rate"],
            **{n: float(v) for n, v in sorted(logs.items()) if n != "learning_rate"},
        }
        self.rows.append(row)
        text = io.StringIO()
        # Phases may differ in their metrics, and earlier versions had fewer.
        names = dict.fromkeys(name for earlier in self.rows for name in earlier)
        writer = csv.DictWriter(text, names, restval="nan")
        writer.writeheader()
        writer.writerows(self.rows)
        write_whole(self.path, text.getvalue())
        self.writer.add(step, {n: v for n, v in row.items() if n != "step"})
        for tracker in self.trackers:
            tracker.log(row)

    def release(self):
        """Closes the TensorBoard file."""
        if self.writer:
            self.writer.close()


def read_metrics(path):
    """Returns the rows of a `metrics.csv` as dicts of numbers; none without it.

    Raises:
        ValueError: A row is damaged; says which.
    """
    if not path.exists():
        return []
    rows = []
    try:
        with open(path, newline="") as file:
            for row in csv.DictReader(file):
                row = {name: float(value) for name, value in row.items()}
                rows.append({**row, "step": int(row["step"])})
    except (csv.Error, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path}: row {len(rows) + 1} is damaged. Remove it, or the file if its "
            "first line is; the run goes on without."
        ) from error
    return rows


def validate(model, dataset):
    """Evaluates with the same masks and samples every time.

    Otherwise the luck of the draw would show in the curves, and training would
    depend on how often it is validated.

    Args:
        model: A compiled `Pretrainer`.
        dataset: Batches of validation examples.

    Returns:
        A dict of floats; names begin with `val_`. The loss is made up of the terms'
        means over all positions, however they are divided into batches.
    """
    state = model.seed_generator.state
    saved = np.array(state)
    state.assign(np.zeros_like(saved))
    metrics = model.evaluate(dataset, return_dict=True, verbose=0)
    state.assign(saved)
    metrics["loss"] = sum(
        weight * metrics[f"{term}_loss"] for term, weight in model.loss_weights.items()
    )
    return {f"val_{name}": float(value) for name, value in metrics.items()}


class RunWarnings:
    """Says when a run looks wrong, with a remedy, once for each trouble.

    A metric that is normal at first, or while the model still learns, is wrong later;
    so it says nothing in the first half, nor while a validation loss falls,
    until the end.

    Args:
        warnings: Function of the validation metrics that yields warnings, each a text
            whose beginning, up to a parenthesis, tells it from others.
        total: Updates of the whole run.
        rows: The rows of `metrics.csv`, a list that grows.
    """

    def __init__(self, warnings, total, rows):
        self.warnings, self.total, self.rows = warnings, total, rows
        self.said = set()

    def on_interval_end(self, step, logs):
        """Looks at the interval's metrics; called by `Intervals`."""
        earlier = [row for row in self.rows if row["step"] < step]
        if step < self.total and (step < 0.5 * self.total or improves(logs, earlier)):
            return
        for text in self.warnings(without_prefix(logs)):
            if text.split("(")[0] not in self.said:
                self.said.add(text.split("(")[0])
                print(f"\nWarning: {text}", file=sys.stderr)


def improves(metrics, earlier):
    """Whether a validation loss is 1% below all earlier ones, or there are none.

    Args:
        metrics: An interval's metrics.
        earlier: The metrics of each interval before it, a list.
    """

    def best(name):
        return min(row.get(name, math.inf) for row in earlier)

    losses = [n for n in metrics if n.startswith("val_") and n.endswith("loss")]
    return not earlier or any(metrics[name] < 0.99 * best(name) for name in losses)


def without_prefix(metrics):
    """Returns the validation metrics among some, without `val_` before their names."""
    return {
        name.removeprefix("val_"): value
        for name, value in metrics.items()
        if name.startswith("val_")
    }


class WholeIntervals(keras.callbacks.CallbackList):
    """Calls a user's `on_epoch_end` only where an interval is whole.

    An interval that was stopped early has no validation; a later run completes it.
    """

    def on_epoch_end(self, epoch, logs=None):
        if "val_loss" in logs:
            super().on_epoch_end(epoch, logs)


class Intervals(keras.callbacks.Callback):
    """Ends each interval: validates, logs, warns and checkpoints; stops when asked.

    Ctrl-C and SIGTERM let the step under way finish; then the state is saved. A
    second Ctrl-C breaks off at once. Several processes stop together, soon after one
    was asked.

    Args:
        checkpoints: `Checkpoints` to write to.
        step: Updates done before.
        validate: Function of the model that returns validation metrics, `val_loss`
            among them.
        listeners: Callbacks with `on_interval_end(step, logs)`.
        distribution: The run's `Distribution`.
        phase: Name of the phase that is trained.
    """

    def __init__(
        self,
        checkpoints,
        step,
        validate,
        listeners,
        distribution=ONE_DEVICE,
        phase=WHOLE_RUN,
    ):
        super().__init__()
        self.distribution = distribution
        self.validate = validate
        self.phase = phase
        self.checkpoints = checkpoints
        self.step = step
        self.listeners = listeners
        self.interrupted = False
        self.handlers = {}

    def on_train_begin(self, logs=None):
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                self.handlers[number] = signal.signal(number, self._interrupt)
            except ValueError:  # not the main thread: leave signals alone
                break

    def _interrupt(self, number, frame):
        self.interrupted = True
        signal.signal(number, self.handlers[number])

    def on_epoch_begin(self, epoch, logs=None):
        self.first_step = self.step

    def on_train_batch_end(self, batch, logs=None):
        questions = self.step // STEPS_BETWEEN_QUESTIONS
        self.step = self.first_step + batch + 1  # the last step of the call
        alone = self.distribution.processes == 1
        if alone or self.step // STEPS_BETWEEN_QUESTIONS > questions:
            self._stop_if_asked()

    def _stop_if_asked(self):
        if self.distribution.any(self.interrupted):
            self.model.stop_training = True

    def on_epoch_end(self, epoch, logs=None):
        self._check(logs["loss"])
        # An interval that was stopped early gets its row when a later run completes it.
        if self.step - self.first_step == self.params["steps"]:
            logs |= self.validate(self.model)  # for the user's callbacks, too
            # The last update may have spoilt weights that no loss has met yet.
            self._check(logs["val_loss"])
            # Computed here: all processes must share all work on the devices.
            logs["learning_rate"] = float(self.model.optimizer.learning_rate)
            norm = getattr(self.model.optimizer, GRADIENT_NORM, None)
            if norm is not None:
                logs[GRADIENT_NORM] = float(ops.convert_to_numpy(norm))
            for listener in self.listeners:
                listener.on_interval_end(self.step, logs)
        self.checkpoints.save(self.model, self.step, self.phase)
        self._stop_if_asked()

    def _check(self, loss):
        if not math.isfinite(loss):
            raise NonFiniteLossError(
                f"The loss is {loss} at step {self.step}; this step was not "
                "saved. Run again with a lower --learning_rate, a longer warm-up or "
                f"--dtype float32{self._continuation()}."
            )

    def _continuation(self):
        steps = self.checkpoints.steps()
        return f" (the last checkpoint is of step {steps[-1]})" if steps else ""

    def release(self):
        """Gives Ctrl-C and SIGTERM their former meaning back."""
        for number, handler in self.handlers.items():
            signal.signal(number, handler)
