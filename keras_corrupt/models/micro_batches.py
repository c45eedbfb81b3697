"""Training steps that go through a batch in parts, and come to the same.

A term of the loss is a mean over all of a batch's positions. Its micro-batches m have
values that add up to N_km and weights that add up to W_km:

    loss = sum_k lambda_k sum_m N_km / sum_m W_km

Gradients can be added up only once all terms' weights are known. These depend on texts
and draws, not on what networks compute; so a first pass finds them, of which compilers
leave the networks out, and the second makes the same draws.
"""

from collections.abc import Mapping

import keras
from keras import ops

from keras_corrupt.devices.replicas import repeat, sum_over_replicas


class MicroBatches(keras.Model):
    """A model whose training step may go through its batch in parts.

    What is compared with a batch's other texts is compared with those of its part.
    """

    #: Parts of equal size that a training step goes through one after the other.
    micro_batches = 1
    #: While a part is traced: name of a term -> weight of all parts.
    weight_sums = {}

    def weighted_terms(self, x, outputs, training):
        """Returns term name -> (values, weights), those of whole sequences included."""
        raise NotImplementedError

    def train_step(self, *args):
        if self.micro_batches == 1:
            return super().train_step(*args)
        *state, data = args
        x, _, _ = keras.utils.unpack_x_y_sample_weight(data)
        x = x if isinstance(x, Mapping) else {"token_ids": x}
        parts = {name: self._parted(array) for name, array in x.items()}
        try:
            if keras.backend.backend() == "jax":
                return self._step_on_jax(x, parts, *state)
            return self._step_on_tensorflow(x, parts)
        finally:
            self.weight_sums = {}

    def _parted(self, array):
        """Returns an array `[batch, ...]` as `[parts, batch / parts, ...]`."""
        size, *rest = array.shape
        if size is not None and size % self.micro_batches:
            raise ValueError(
                f"A batch of {size} sequences cannot be divided into micro_batches="
                f"{self.micro_batches} of equal size."
            )
        parted = ops.reshape(array, (self.micro_batches, -1, *rest))
        distribution = keras.distribution.distribution()
        if distribution is None:
            return parted
        # The devices share each part, not the parts.
        layout = distribution.get_data_layout(parted.shape[1:])
        axes = None, *layout.axes
        layout = keras.distribution.TensorLayout(axes, layout.device_mesh)
        return keras.distribution.distribute_tensor(parted, layout)

    def _find_weight_sums(self, parts, values, fixed=()):
        """Sets `weight_sums`; what is drawn for it can be drawn again.

        Args:
            parts: The model's inputs, `[parts, batch / parts, ...]`.
            values: Those of `non_trainable_variables`, before the step.
            fixed: Pairs of further variables and their values.
        """
        variables = self.non_trainable_variables

        def add(number, state):
            sums, values = state
            part = {name: array[number] for name, array in parts.items()}
            mapping = [*fixed, *zip(variables, values, strict=True)]
            with keras.StatelessScope(mapping) as scope:
                terms = self.weighted_terms(part, self(part, training=True), True)
                weights = [terms[name][1] for name in self.loss_weights]
                found = [ops.sum(ops.cast(x, "float32")) for x in weights]
            values = [scope.get_current_value(v) for v in variables]
            return sums + ops.stack(found), values

        start = ops.zeros(len(self.loss_weights)), values
        sums, _ = repeat(self.micro_batches, add, start)
        sums = ops.unstack(sum_over_replicas(sums), len(self.loss_weights))
        self.weight_sums = dict(zip(self.loss_weights, sums, strict=True))

    def _step_on_jax(self, x, parts, state):
        import jax

        trainable, non_trainable, optimizer, metrics = state
        known = [*zip(self.trainable_variables, trainable, strict=True)]
        self._find_weight_sums(parts, non_trainable, known)
        gradient = jax.value_and_grad(self.compute_loss_and_updates, has_aux=True)

        def add(number, state):
            loss, gradients, non_trainable, metrics = state
            part = {name: array[number] for name, array in parts.items()}
            (_, (part_loss, _, non_trainable, metrics)), found = gradient(
                *(trainable, non_trainable, metrics, part, None, None),
                training=True,
                optimizer_variables=optimizer,
            )
            gradients = [a + b for a, b in zip(gradients, found, strict=True)]
            return loss + part_loss, gradients, non_trainable, metrics

        start = 0.0, [*map(ops.zeros_like, trainable)], non_trainable, metrics
        loss, gradients, non_trainable, metrics = repeat(self.micro_batches, add, start)
        trainable, optimizer = self.optimizer.stateless_apply(
            optimizer, gradients, trainable
        )
        logs, metrics = self._update_metrics_variables(
            metrics, loss, x, None, None, None
        )
        return logs, (trainable, non_trainable, optimizer, metrics)

    def _step_on_tensorflow(self, x, parts):
        import tensorflow as tf

        values = [ops.convert_to_tensor(v) for v in self.non_trainable_variables]
        self._find_weight_sums(parts, values)
        variables = self.trainable_variables

        def add(number, state):
            loss, gradients = state
            part = {name: array[number] for name, array in parts.items()}
            with tf.GradientTape() as tape:
                outputs = self(part, training=True)
                part_loss = self.compute_loss(part, y_pred=outputs)
                scaled = self.optimizer.scale_loss(part_loss)
            found = tape.gradient(
                scaled,
                [v.value for v in variables],
                unconnected_gradients=tf.UnconnectedGradients.ZERO,
            )
            gradients = [a + b for a, b in zip(gradients, found, strict=True)]
            return loss + part_loss, gradients

        start = tf.zeros(()), [*map(ops.zeros_like, variables)]
        loss, gradients = repeat(self.micro_batches, add, start)
        # A replica reports its loss times their number.
        replicas = tf.distribute.get_strategy().num_replicas_in_sync
        size = tf.shape(next(iter(x.values())))[0]
        self._loss_tracker.update_state(loss * replicas, sample_weight=size)
        self.optimizer.apply(gradients, variables)
        return self.compute_metrics(x, None, None)
