"""What a training step takes to compile, and of each device's memory."""

import inspect
import itertools
import time

import keras


class CompiledMemory(keras.callbacks.Callback):
    """Tells the time and memory of a step that XLA compiles for JAX, before it runs.

    Elsewhere nobody knows it before, and nothing is told. The step is compiled once:
    JAX keeps what was compiled for the call that follows.

    Args:
        tell: Function that gets a sentence.
    """

    def __init__(self, tell):
        super().__init__()
        self.tell = tell

    def on_train_begin(self, logs=None):
        """Comes after Keras has made the step, before it calls it."""
        every_step = self.model.train_function
        step = inspect.getclosurevars(every_step).nonlocals.get("step_function")
        if not hasattr(step, "lower"):
            return

        number = self.model.steps_per_execution

        def first_step(state, iterator):
            self.model.train_function = every_step
            batches = [*itertools.islice(iterator, number)]
            data = batches if number > 1 else batches[0]
            start = time.monotonic()
            memory = step.lower(state, data).compile().memory_analysis()
            if memory is not None:
                self.tell(described(memory, time.monotonic() - start))
            return every_step(state, iter(batches))

        self.model.train_function = first_step


def described(memory, seconds):
    """Returns a sentence on the compiler's account of a step.

    Args:
        memory: What `jax.stages.Compiled.memory_analysis` returns, bytes on a device.
        seconds: What compiling took.

    >>> from types import SimpleNamespace
    >>> described(SimpleNamespace(
    ...     argument_size_in_bytes=2e9, temp_size_in_bytes=3e9,
    ...     output_size_in_bytes=2e9, alias_size_in_bytes=2e9), seconds=52.3)
    'memory:     the step, compiled in 52 s, takes 5.00 GB on each device: 2.00 of \
weights, optimizer and batch, 3.00 while it computes'
    """
    kept = memory.argument_size_in_bytes
    new = memory.output_size_in_bytes - memory.alias_size_in_bytes
    computing = memory.temp_size_in_bytes + new
    return (
        f"memory:     the step, compiled in {seconds:.0f} s, takes "
        f"{(kept + computing) / 1e9:.2f} GB on each device: {kept / 1e9:.2f} of "
        f"weights, optimizer and batch, {computing / 1e9:.2f} while it computes"
    )
