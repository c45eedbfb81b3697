"""Training steps that go through a batch in parts, and come to the same.

A term of the loss is a mean over all of a batch's positions. Its micro-batches m have
values that add up to N_km and weights that add up to W_km:

    loss = sum_k lambda_k sum_m N_km / sum_m W_km

Gradients can be added up only once all terms' weights are known. These depend on texts
and draws, not on what networks compute; so a first pass finds them, of which compilers
leave the networks out, and the second makes the same draws.

Objectives that compare texts compare the texts of one part.
"""

from collections.abc import Mapping

import keras
from keras import ops

from keras_corrupt.devices.replicas import repeat, sum_over_replicas


def train_step(model, *args):
    """Makes a step of a `Pretrainer` in `micro_batches` parts of equal size.

    Args:
        model: The model. While a part is traced its `weight_sums` are set.
        args: What `keras.Model.train_step` takes on the backend.

    Returns:
        What that returns.
    """
    *state, data = args
    x, _, _ = keras.utils.unpack_x_y_sample_weight(data)
    x = x if isinstance(x, Mapping) else {"token_ids": x}
    parts = {name: _parted(array, model.micro_batches) for name, array in x.items()}
    try:
        if keras.backend.backend() == "jax":
            return _step_on_jax(model, x, parts, *state)
        return _step_on_tensorflow(model, x, parts)
    finally:
        model.weight_sums = {}


def _parted(array, number):
    """Returns an array `[batch, ...]` as `[parts, batch / parts, ...]`."""
    size, *rest = array.shape
    if size is not None and size % number:
        raise ValueError(
            f"A batch of {size} sequences cannot be divided into micro_batches="
            f"{number} of equal size."
        )
    parted = ops.reshape(array, (number, -1, *rest))
    distribution = keras.distribution.distribution()
    if distribution is None:
        return parted
    # The devices share each part, not the parts.
    layout = distribution.get_data_layout(parted.shape[1:])
    axes = None, *layout.axes
    layout = keras.distribution.TensorLayout(axes, layout.device_mesh)
    return keras.distribution.distribute_tensor(parted, layout)


def _find_weight_sums(model, parts, values, fixed=()):
    """Sets `weight_sums`; the draws that it makes can be made again.

    Args:
        model: The model.
        parts: The model's inputs, `[parts, batch / parts, ...]`.
        values: Values of `non_trainable_variables`, before the step.
        fixed: Pairs of further variables and their values.
    """
    variables, names = model.non_trainable_variables, list(model.loss_weights)

    def add(number, state):
        sums, values = state
        part = {name: array[number] for name, array in parts.items()}
        mapping = [*fixed, *zip(variables, values, strict=True)]
        with keras.StatelessScope(mapping) as scope:
            terms = model.weighted_terms(part, model(part, training=True), True)
            weights = [terms[name][1] for name in names]
            part_sums = [ops.sum(ops.cast(x, "float32")) for x in weights]
        values = [scope.get_current_value(v) for v in variables]
        return sums + ops.stack(part_sums), values

    start = ops.zeros(len(names)), values
    sums, _ = repeat(model.micro_batches, add, start)
    sums = ops.unstack(sum_over_replicas(sums), len(names))
    model.weight_sums = dict(zip(names, sums, strict=True))


def _step_on_jax(model, x, parts, state):
    import jax

    trainable, non_trainable, optimizer, metrics = state
    fixed = [*zip(model.trainable_variables, trainable, strict=True)]
    _find_weight_sums(model, parts, non_trainable, fixed)
    gradient = jax.value_and_grad(model.compute_loss_and_updates, has_aux=True)

    def add(number, state):
        loss, gradients, non_trainable, metrics = state
        part = {name: array[number] for name, array in parts.items()}
        (_, (part_loss, _, non_trainable, metrics)), part_gradients = gradient(
            *(trainable, non_trainable, metrics, part, None, None),
            training=True,
            optimizer_variables=optimizer,
        )
        gradients = [a + b for a, b in zip(gradients, part_gradients, strict=True)]
        return loss + part_loss, gradients, non_trainable, metrics

    start = 0.0, [*map(ops.zeros_like, trainable)], non_trainable, metrics
    loss, gradients, non_trainable, metrics = repeat(model.micro_batches, add, start)
    trainable, optimizer = model.optimizer.stateless_apply(
        optimizer, gradients, trainable
    )
    logs, metrics = model._update_metrics_variables(metrics, loss, x, None, None, None)
    return logs, (trainable, non_trainable, optimizer, metrics)


def _step_on_tensorflow(model, x, parts):
    import tensorflow as tf

    values = [ops.convert_to_tensor(v) for v in model.non_trainable_variables]
    _find_weight_sums(model, parts, values)
    variables = model.trainable_variables

    def add(number, state):
        loss, gradients = state
        part = {name: array[number] for name, array in parts.items()}
        with tf.GradientTape() as tape:
            outputs = model(part, training=True)
            part_loss = model.compute_loss(part, y_pred=outputs)
            scaled = model.optimizer.scale_loss(part_loss)
        part_gradients = tape.gradient(
            scaled,
            [v.value for v in variables],
            unconnected_gradients=tf.UnconnectedGradients.ZERO,
        )
        gradients = [a + b for a, b in zip(gradients, part_gradients, strict=True)]
        return loss + part_loss, gradients

    start = tf.zeros(()), [*map(ops.zeros_like, variables)]
    loss, gradients = repeat(model.micro_batches, add, start)
    # A replica reports its loss times their number.
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    size = tf.shape(next(iter(x.values())))[0]
    model._loss_tracker.update_state(loss * replicas, sample_weight=size)
    model.optimizer.apply(gradients, variables)
    return model.compute_metrics(x, None, None)
