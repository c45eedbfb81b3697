"""The training loop: from the last checkpoint on, with progress, logs and validation.

Pretraining uses it for each of its phases; any compiled `keras.Model` can be trained
by it, whatever its batches are.
"""

from keras_corrupt.devices.batches import fed
from keras_corrupt.devices.distribution import ONE_DEVICE
from keras_corrupt.training.callbacks import (
    Intervals,
    Progress,
    RunLog,
    RunWarnings,
    WholeIntervals,
)
from keras_corrupt.training.compiled_memory import CompiledMemory
from keras_corrupt.training.phases import WHOLE_RUN


def train(
    model,
    batches_from,
    validate,
    checkpoints,
    *,
    output,
    steps,
    interval,
    first_step=0,
    start=None,
    total=None,
    tokens_per_step=0,
    warnings=None,
    judged_at=None,
    vital=(),
    watch=None,
    listeners=(),
    callbacks=(),
    trackers=(),
    per_second=(),
    phase=WHOLE_RUN,
    devices=ONE_DEVICE,
    at_once=1,
):
    """Trains until so many steps are done, or until the user stops it.

    Every `interval` steps it validates, adds a row to `metrics.csv` and TensorBoard,
    and writes a checkpoint. Called again after an end of whatever kind, it goes on
    from the last checkpoint as if nothing had happened.

    Args:
        model: A `keras.Model`, built and compiled, its optimizer built.
        batches_from: Function of the number of steps done that returns the batches
            from there on, `Batches` without end. They must depend on nothing else.
        validate: Function of the model that returns a dict of metrics, names beginning
            with `val_`, `val_loss` among them.
        checkpoints: The `Checkpoints` of the run.
        output: Directory for the logs, a `Path`.
        steps: Steps that are done at the end, steps of earlier phases included.
        interval: Steps from one validation to the next.
        first_step: Steps that were done when this phase began.
        start: Function that is called when no step of this phase is done yet.
        total: Steps of the whole run, where this phase is not the last.
        tokens_per_step: Token slots in a step, for the log.
        warnings: See `RunWarnings`.
        judged_at: Steps after which these are final; `total` if not given.
        vital: Validation metrics that the progress line has: see `Progress`.
        watch: A `CollapseWatch`.
        listeners: What else is told of each interval, in all processes: see
            `Intervals`.
        callbacks: More Keras callbacks, whose epochs are intervals, numbered from 0
            through all stops and phases. One that sets `model.stop_training` stops the
            run as Ctrl-C does.
        trackers: `Tracker`s, which get the rows of `metrics.csv`.
        per_second: See `RunLog`.
        phase: Name of the phase, which checkpoints tell.
        devices: The run's `Distribution`.
        at_once: Updates in one call of the device, at most: see `makes_many`. No call
            goes beyond an interval, and the number in a call divides the interval's.

    Returns:
        Whether all steps are done; `False` if the user stopped.

    Raises:
        NonFiniteLossError: The loss became infinite or not a number.
        CollapseError: The model has died.
        CheckpointError: A checkpoint could not be written or read.
    """
    while (step := checkpoints.restore(model, phase)) < steps:
        if step == first_step and start is not None:
            start()
        if step and devices.first:
            print(f"Continuing at step {step:,}.", flush=True)
        own, told, asking = [], [], []
        if devices.first:
            progress = Progress(step, total or steps, vital)
            log = RunLog(output, step, tokens_per_step, trackers, per_second)
            own, told = [progress, log], [progress, log]
            asking = [CompiledMemory(progress.tell)]
            if warnings is not None:
                last = judged_at or total or steps
                told.append(RunWarnings(warnings, last, log.rows))
        # What follows the watch is told of no model that has died.
        told += [watch, *listeners] if watch else listeners
        intervals = Intervals(checkpoints, step, validate, told, devices, phase)
        # A run that was stopped within an interval first completes that one.
        stop = min(steps, (step // interval + 1) * interval)
        whole = stop - step == interval
        model.steps_per_execution = largest_divisor(stop - step, at_once)
        # These depend on this number.
        model.train_function = model.test_function = None
        begun = -(-first_step // interval)  # intervals before this phase
        epoch = begun + step // interval - first_step // interval
        try:
            with fed(batches_from(step)) as batches:
                model.fit(
                    batches,
                    steps_per_epoch=stop - step,
                    initial_epoch=epoch,
                    epochs=epoch + ((steps - step) // interval if whole else 1),
                    callbacks=[*own, *asking, intervals, WholeIntervals(callbacks)],
                    verbose=0,
                    shuffle=False,
                )
        finally:
            for callback in (*own, intervals):
                callback.release()  # Keras does not when training fails
        if model.stop_training:
            if devices.first:
                print(
                    f"\nStopped and saved at step {intervals.step:,}. Run the same "
                    "command again to continue."
                )
            return False
    return True


def largest_divisor(number, most):
    """Returns the largest divisor of a number that is no larger than `most`.

    >>> largest_divisor(500, 30), largest_divisor(7, 5)
    (25, 1)
    """
    return max(n for n in range(1, most + 1) if number % n == 0)
