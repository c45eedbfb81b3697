"""Training on all devices: which, by what means, and what the processes agree on.

N devices give the update that one gives on the same global batch. On TensorFlow each
device runs the step on its share of the batch, and `devices/replicas.py` has what the
replicas owe each other. On JAX one program spans the devices of all processes, and what
concerns the batch as a whole needs no care.
"""

import contextlib
import dataclasses
import json
import os
import re
from typing import Any

import keras
import numpy as np

#: Backend -> its strategies.
STRATEGIES = {"tensorflow": ("none", "mirrored", "tpu"), "jax": ("none", "jax")}
#: Characters of an error that other processes are told.
MESSAGE_BYTES = 2048
#: How the errors begin that a failed exchange between processes causes.
LOST = re.compile("UNKNOWN|INTERNAL|UNAVAILABLE|ABORTED|CANCELLED|DEADLINE_EXCEEDED")


class LostProcessError(RuntimeError):
    """Another process of the run ended, and this one cannot go on alone."""


@dataclasses.dataclass(frozen=True)
class Distribution:
    """Devices that train one model together.

    Attributes:
        strategy: `"none"`, `"mirrored"`, `"tpu"` or `"jax"`.
        devices: Names of the devices of all processes.
        reason: Why these, for people to read.
        handle: Keras's or TensorFlow's object of the strategy, `None` for `"none"`.
        processes: Processes that train together.
        process: The number of this one, from 0.
    """

    strategy: str
    devices: tuple[str, ...]
    reason: str
    handle: Any = None
    processes: int = 1
    process: int = 0

    @property
    def first(self):
        """Whether this is the process that writes files and talks."""
        return self.process == 0

    @contextlib.contextmanager
    def scope(self):
        """Makes models, optimizers and training within it use the devices.

        Raises:
            LostProcessError: Another process ended meanwhile.
        """
        with contextlib.ExitStack() as stack:
            if self.handle is not None:
                stack.enter_context(self.handle.scope())
            if self.processes > 1:
                stack.enter_context(explaining_lost_process())
            yield

    def check_batch(self, config):
        """Raises a `ValueError` if a batch cannot be split evenly."""
        batch = config.batch_size // config.accumulate
        if batch % len(self.devices):
            raise ValueError(
                f"--batch_size {config.batch_size} (over --accumulate "
                f"{config.accumulate}) cannot be split evenly among "
                f"{len(self.devices)} devices. Choose a multiple of "
                f"{len(self.devices) * config.accumulate}, or fewer --devices."
            )

    def describe(self, batch):
        """Returns a line for the banner; `batch` is the sequences of a batch."""
        count = len(self.devices)
        kind = self.devices[0].split(":")[0].upper() + "s" * (count > 1)
        where = f" in {self.processes} processes" if self.processes > 1 else ""
        share = f", {batch // count} sequences of a batch each" if count > 1 else ""
        return f"{count} {kind}{where}{share}; {self.reason}"

    def part_of(self, batches, batch_size):
        """Returns this process's part of each batch, all of one size.

        A last batch that is not full is filled with examples of padding, which have
        no weight: it can be split too, and all processes see as many batches.

        Args:
            batches: `Batches` of dicts, the global batches.
            batch_size: Examples of a full one.
        """
        if len(self.devices) == 1:
            return batches
        size = batch_size // self.processes

        def rows(array):
            missing = [(0, batch_size - len(array))] + [(0, 0)] * (array.ndim - 1)
            return np.pad(array, missing)[self.process * size :][:size]

        return batches.map(lambda batch: {n: rows(a) for n, a in batch.items()}, ())

    # === What several processes agree on ===

    def in_all_processes(self, function, first_only=False):
        """Calls `function` in every process; if it fails in one, all fail.

        Args:
            function: Called without arguments.
            first_only: Whether only the first process calls it, the others wait.

        Returns:
            What `function` returned; `None` where it was not called.

        Raises:
            ValueError: It failed in another process.
        """
        result, error = None, None
        try:
            if self.first or not first_only:
                result = function()
        except Exception as caught:
            error = caught
        if self.processes > 1:
            # An error may say nothing.
            text = "" if error is None else str(error) or type(error).__name__
            text = text.encode()[:MESSAGE_BYTES]
            failed = np.frombuffer(text.ljust(MESSAGE_BYTES, b"\0"), np.uint8)
            for number, row in enumerate(self._gather(failed)):
                if error is None and row.any():
                    other = bytes(row).rstrip(b"\0").decode(errors="replace")
                    error = ValueError(f"process {number}: {other}")
        if error is not None:
            raise error
        return result

    def any(self, flag):
        """Returns whether `flag` is true in any process."""
        if self.processes == 1:
            return flag
        return bool(self._gather(np.array([flag], np.uint8)).any())

    def from_first(self, arrays):
        """Returns the first process's dict of arrays, in every process."""
        if self.processes == 1:
            return arrays
        from jax.experimental import multihost_utils

        return multihost_utils.broadcast_one_to_all(arrays)

    def _gather(self, array):
        from jax.experimental import multihost_utils

        return np.array(multihost_utils.process_allgather(array))


#: One process on one device.
ONE_DEVICE = Distribution("none", ("default",), "no strategy")


@contextlib.contextmanager
def explaining_lost_process():
    """Turns the errors that another process's end causes into one that tells."""
    try:
        yield
    # JAX raises one or the other.
    except (RuntimeError, ValueError) as error:
        if not LOST.match(str(error)):
            raise
        raise LostProcessError(
            "This process cannot go on; most likely another one ended "
            f"({str(error).splitlines()[0][:200]}). Run the same command on every host "
            "again: it continues from the last checkpoint."
        ) from error


def choose(config):
    """Finds the devices of a run and how to use them.

    Args:
        config: A `PretrainConfig`.

    Returns:
        A `Distribution`.

    Raises:
        ValueError: What was asked for is not there or does not fit.
    """
    backend = keras.backend.backend()
    strategies = STRATEGIES.get(backend, ("none",))
    if config.strategy not in ("auto", *strategies):
        raise ValueError(
            f"--strategy {config.strategy} is not for the backend {backend}, which has "
            f"auto, {', '.join(strategies)}. Leave it out, or set KERAS_BACKEND."
        )
    if config.coordinator is None and (config.processes, config.process_id) != (1, 0):
        raise ValueError(
            "--processes and --process_id need --coordinator HOST:PORT, the first "
            "process's address."
        )
    if backend == "tensorflow":
        distribution = on_tensorflow(config)
    elif backend == "jax":
        distribution = on_jax(config)
    else:
        distribution = Distribution("none", (backend,), "the backend's default device")
    distribution.check_batch(config)
    return distribution


def on_tensorflow(config):
    """Returns the `Distribution` on TensorFlow."""
    import tensorflow as tf

    workers = json.loads(os.environ.get("TF_CONFIG") or "{}").get("cluster", {})
    if config.coordinator or sum(map(len, workers.values())) > 1:
        raise ValueError(
            "Keras 3 trains in one process only on TensorFlow ("
            f"{'--coordinator' if config.coordinator else 'TF_CONFIG'} asks for more). "
            "Use JAX for several hosts: KERAS_BACKEND=jax, and --coordinator."
        )
    tpus = bool(tf.config.list_physical_devices("TPU"))
    if config.strategy == "tpu" or (config.strategy == "auto" and tpus):
        return on_tensorflow_tpu(config)
    kind = "GPU" if tf.config.list_logical_devices("GPU") else "CPU"
    names = [f"{kind}:{i}" for i in range(len(tf.config.list_logical_devices(kind)))]
    strategy, names, reason = selected(config, names, "mirrored", "MirroredStrategy")
    handle = None
    if strategy == "mirrored":
        # Virtual CPU devices, for want of more, add up faster without collectives.
        sums = tf.distribute.ReductionToOneDevice() if kind == "CPU" else None
        handle = tf.distribute.MirroredStrategy(names, cross_device_ops=sums)
    return Distribution(strategy, names, reason, handle)


def on_tensorflow_tpu(config):
    """Returns the `Distribution` on a TPU of TensorFlow."""
    import tensorflow as tf

    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver.connect()
        handle = tf.distribute.TPUStrategy(resolver)
    except (ValueError, tf.errors.OpError) as error:
        raise ValueError(
            "--strategy tpu: TensorFlow finds no TPU "
            f"({str(error).splitlines()[0]}). TensorFlow 2.19 was the last to be built "
            "for TPUs; KERAS_BACKEND=jax uses them with newer ones."
        ) from error
    names = tuple(f"TPU:{i}" for i in range(handle.num_replicas_in_sync))
    if config.devices not in ("auto", len(names)):
        raise ValueError(
            f"--devices {config.devices}: TPUStrategy uses all {len(names)} cores."
        )
    return Distribution("tpu", names, "TPUStrategy", handle)


def on_jax(config):
    """Returns the `Distribution` on JAX, after joining the other processes."""
    import jax

    if config.coordinator:
        join(config)
    processes, process = jax.process_count(), jax.process_index()
    names = tuple(keras.distribution.list_devices())
    if processes == 1:
        strategy, names, reason = selected(config, names, "jax", "DataParallel")
    elif config.strategy == "none" or config.devices != "auto":
        raise ValueError(
            "Several processes use all devices of each: leave --strategy and --devices "
            "out."
        )
    else:
        strategy, reason = "jax", "DataParallel over all of each process"
    handle = None
    if strategy == "jax":
        handle = keras.distribution.DataParallel(
            devices=list(names), auto_shard_dataset=False
        )
    return Distribution(strategy, names, reason, handle, processes, process)


def join(config):
    """Meets the run's other processes; nothing must have run on JAX before."""
    import jax

    if jax.distributed.is_initialized():
        return
    settings = {}
    if config.coordinator != "auto":
        settings = {
            "coordinator_address": config.coordinator,
            "num_processes": config.processes,
            "process_id": config.process_id,
        }
    # Its handler of SIGTERM would be in the way of ours.
    jax.config.update("jax_enable_preemption_service", False)
    # A process that failed waits for the others before it ends, and they for it.
    jax.distributed.initialize(**settings, shutdown_timeout_seconds=30)


def selected(config, names, strategy, label):
    """Returns the strategy, the names of the devices and the reason.

    Args:
        config: A `PretrainConfig`.
        names: The names of all devices of the best kind.
        strategy: What to use for several.
        label: Its name in its library.
    """
    if config.strategy == "none" and config.devices not in ("auto", 1):
        raise ValueError(
            f"--devices {config.devices} needs a strategy; --strategy none uses one."
        )
    if config.devices != "auto" and not 1 <= config.devices <= len(names):
        raise ValueError(
            f"--devices {config.devices}: there are {len(names)} ({', '.join(names)})."
        )
    batch, count = config.batch_size // config.accumulate, config.devices
    why = "as asked"
    if config.strategy == "none":
        count = 1
    elif count == "auto":
        count = max(n for n in range(1, len(names) + 1) if batch % n == 0)
        why = f"no more share {batch} sequences evenly"
    if count == 1 and config.strategy in ("auto", "none"):
        strategy, label = "none", "no strategy"
    limits = f", {why}" if count < len(names) else ""
    return strategy, tuple(names[:count]), f"{label}, {count} of {len(names)}{limits}"
