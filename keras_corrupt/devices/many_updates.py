"""Many updates in one program, on JAX.

Between two programs the host puts all variables away and takes them out again, which
costs ten milliseconds with the thousand of them that a deep model and its optimizer
have. A GPU makes an update of a small model in as much time, and waits.

Within the program the variables and the optimizer's averages are a few flat arrays, as
far as the optimizer can update these: it takes a few kernels, not several for each of
hundreds of variables. Between programs they are as always.
"""

import itertools

import keras

from keras_corrupt.devices.accelerators import accelerators
from keras_corrupt.devices.flat_arrays import FlatArrays

#: Updates in one program on an accelerator, at most: of ELECTRA-Small a third of a
#: second.
MOST = 25


def most_at_once():
    """Returns how many updates to make in one program, at most.

    On CPUs that is one: the programs take longer there than the pauses between them.
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

    shardings = {}
    if keras.distribution.distribution() is not None:
        shardings["out_shardings"] = None, model._get_state_sharding_spec()
    step_function = jax.jit(program(model), donate_argnums=0, **shardings)

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


def program(model):
    """Returns the function of a state and a list of batches -> logs and state.

    Args:
        model: A compiled `keras.Model`, its optimizer built.
    """
    import jax

    layout = layout_of(model)

    def updates(state, batches):
        batches = jax.tree.map(lambda *arrays: jax.numpy.stack(arrays), *batches)
        structure = jax.tree.structure(tuple(map(list, state)))

        def update(flat, batch):
            state = jax.tree.unflatten(structure, layout.unpack(flat))
            logs, state = model.train_step(state, batch)
            return layout.pack(jax.tree.leaves(state)), logs

        model.optimizer.flat = bool(getattr(model.optimizer, "flat_variables", ()))
        try:
            flat = layout.pack(jax.tree.leaves(state))
            flat, logs = jax.lax.scan(update, flat, batches)
        finally:
            model.optimizer.flat = False
        state = jax.tree.unflatten(structure, layout.unpack(flat))
        return jax.tree.map(lambda values: values[-1], logs), state

    return updates


def layout_of(model):
    """Returns the `FlatArrays` of all variables that training changes."""
    optimizer = model.optimizer
    variables = [
        *model.trainable_variables,
        *model.non_trainable_variables,
        *optimizer.variables,
        *model.metrics_variables,
    ]
    keys = {id(variable): position for position, variable in enumerate(variables)}
    for row, together in enumerate(getattr(optimizer, "flat_variables", ())):
        for key, positions in optimizer.layout.positions.items():
            keys |= {id(together[position]): (row, *key) for position in positions}
    return FlatArrays(
        [variable.shape for variable in variables],
        [keys[id(variable)] for variable in variables],
    )
