"""Many updates in one program, on JAX.

Between two programs the host puts all variables away and takes them out again, which
costs ten milliseconds with the thousand of them that a deep model and its optimizer
have. A GPU makes an update of a small model in as much time, and waits.
"""

import itertools

import keras

from keras_corrupt.devices.accelerators import accelerators

#: Updates in one program on an accelerator, at most: of ELECTRA-Small a third of a
#: second.
MOST = 25


def most_at_once():
    """Returns how many updates to make in one program, at most.

    On CPUs that is one: the programs take longer there than what is between them.
    """
    return MOST if keras.backend.backend() == "jax" and accelerators() else 1


def makes_many(model):
    """Returns whether a compiled model makes several updates in one program, on JAX.

    Keras calls a program for each of its `steps_per_execution`. Updates and metrics are
    the same up to rounding. Batches of different shapes, and the last ones of an epoch
    that are fewer, take one program each.
    """
    on_jax = keras.backend.backend() == "jax"
    return on_jax and model.steps_per_execution > 1 and model.jit_compile


def many_updates(model):
    """Returns what Keras calls to train: state and iterator -> logs and state.

    Args:
        model: A compiled `keras.Model`.
    """
    import jax

    def update(state, batch):
        logs, state = model.train_step(state, batch)
        return tuple(map(list, state)), logs

    def updates(state, batches):
        batches = jax.tree.map(lambda *arrays: jax.numpy.stack(arrays), *batches)
        state, logs = jax.lax.scan(update, tuple(map(list, state)), batches)
        return jax.tree.map(lambda values: values[-1], logs), state

    shardings = {}
    if keras.distribution.distribution() is not None:
        shardings["out_shardings"] = None, model._get_state_sharding_spec()
    step_function = jax.jit(updates, donate_argnums=0, **shardings)

    def train(state, iterator):
        batches = [next(iterator)]
        batches += itertools.islice(iterator, model.steps_per_execution - 1)
        shapes = [jax.tree.map(lambda array: array.shape, batch) for batch in batches]
        whole = len(batches) == model.steps_per_execution
        if whole and all(shape == shapes[0] for shape in shapes):
            return step_function(state, batches)
        for batch in batches:
            logs, state = step_function(state, [batch])
        return logs, state

    return train
