"""What a training step takes of each device's memory, told by its compiler."""

import inspect
import itertools

import keras


class CompiledMemory(keras.callbacks.Callback):
    """Tells the memory of a step that XLA compiles for JAX, before it runs first.

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
            memory = step.lower(state, data).compile().memory_analysis()
            if memory is not None:
                self.tell(described(memory))
            return every_step(state, iter(batches))

        self.model.train_function = first_step


def described(memory):
    """Returns a sentence on the compiler's account of a step.

    Args:
        memory: What `jax.stages.Compiled.memory_analysis` returns, bytes on a device.

    >>> from types import SimpleNamespace
    >>> described(SimpleNamespace(
    ...     argument_size_in_bytes=2e9, temp_size_in_bytes=3e9,
    ...     output_size_in_bytes=2e9, alias_size_in_bytes=2e9))
    'memory:     the compiled step takes 5.00 GB on each device: 2.00 of weights, \
optimizer and batch, 3.00 while it computes'
    """
    kept = memory.argument_size_in_bytes
    new = memory.output_size_in_bytes - memory.alias_size_in_bytes
    computing = memory.temp_size_in_bytes + new
    return (
        f"memory:     the compiled step takes {(kept + computing) / 1e9:.2f} GB on "
        f"each device: {kept / 1e9:.2f} of weights, optimizer and batch, "
        f"{computing / 1e9:.2f} while it computes"
    )
