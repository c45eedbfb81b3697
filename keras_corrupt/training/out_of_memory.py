"""The one message with which training ends where memory does not suffice."""

import contextlib
import re

import keras

from keras_corrupt.commands.frame import RunError
from keras_corrupt.training.memory import (
    STATE_BYTES,
    SUM_BYTES,
    remat_bytes,
    training_bytes,
)


class OutOfMemoryError(RunError):
    """A step needs more memory than there is."""


@contextlib.contextmanager
def memory_remedies(describe, *args):
    """Turns the backend's error for want of memory into an `OutOfMemoryError`.

    Args:
        describe: Function that returns what it says.
        args: The function's arguments.
    """
    try:
        yield
    except Exception as error:
        if not _is_shortage(error):
            raise
        raise OutOfMemoryError(describe(*args)) from error


def _is_shortage(error):
    if keras.backend.backend() == "jax":
        import jax

        kind, text = jax.errors.JaxRuntimeError, "RESOURCE_EXHAUSTED"
    else:
        import tensorflow as tf

        # A full disk exhausts a resource, too.
        kind, text = tf.errors.ResourceExhaustedError, "OOM|memory"
    return isinstance(error, kind) and re.search(text, str(error))


def of_pretraining(config, model, devices, checkpoints):
    """Returns what a run says that has too little memory.

    Args:
        config: A `PretrainConfig`.
        model: The model.
        devices: The run's `Distribution`.
        checkpoints: Its `Checkpoints`.
    """
    batch, length = config.batch_size // config.accumulate, config.sequence_length
    size = batch // len(devices.devices)
    state, activations, _ = training_bytes(model, size, length)
    sums = (config.accumulate == 1) * model.count_params() * SUM_BYTES
    remedies = []
    for factor in (2, 4, 8):
        if size % factor == 0 and batch // factor >= model.smallest_batch:
            _, less, _ = training_bytes(model, size // factor, length)
            remedies.append((f"--accumulate {config.accumulate * factor}", less + sums))
    network = next(iter(model.network_arguments))
    has_remat = "remat" in model.get_config()[network]
    for remat in ("attention", "layer") * has_remat:
        less = remat_bytes(model, size, length, remat)
        remedies.append((f"--{network}.remat {remat}", less))
    _, less, _ = training_bytes(model, size, length // 2)
    remedies.append((f"--sequence_length {length // 2}", less))
    steps = checkpoints.steps()
    kept = f"the checkpoint of step {steps[-1]}" if steps else "no checkpoint yet"
    return described(f"{size} x {length} tokens", state, activations, remedies) + (
        f"\nThere is {kept}. A run goes on with another --accumulate; the others are "
        "for a new --output."
    )


def of_fine_tuning(model, batch_size, length, flag="--settings"):
    """Returns what a run of fine-tuning says that has too little memory.

    Args:
        model: The `DownstreamModel`, or `MultiTaskModel`.
        batch_size: Its sequences in a step.
        length: Their tokens, at most.
        flag: The flag of the run's settings.
    """

    def activations(batch_size, length):
        return model.encoder.activation_bytes(batch_size, length, model.number_bytes)

    remedies = [
        (f"{flag} batch_size {size}", activations(size, length))
        for size in (batch_size // 2, batch_size // 4)
        if size
    ]
    shorter = length // 2
    remedies.append((f"--max_length {shorter}", activations(batch_size, shorter)))
    step = f"{batch_size} x {length} tokens"
    state = model.count_params() * STATE_BYTES
    return described(step, state, activations(batch_size, length), remedies) + (
        "\nRuns that are complete are kept."
    )


def described(step, state, activations, remedies):
    """Returns what does not fit, and what would take less.

    Args:
        step: What goes through the model at once, on one device.
        state: Bytes of weights and optimizer.
        activations: Bytes of activations.
        remedies: Pairs of a flag and the bytes beside `state` with it, the first to
            try first. Those that bring nothing are left out.
    """
    lines = [
        f"Memory does not suffice for {step} at once, which take about "
        f"{(state + activations) / 1e9:.2f} GB on each device (an estimate), "
        f"{state / 1e9:.2f} of them for weights and optimizer. In this order, each by "
        "itself:"
    ]
    for flag, less in remedies:
        if less < activations:
            lines.append(f"  {flag:36} about {(state + less) / 1e9:.2f} GB")
    return "\n".join(lines)
