import keras
import numpy as np
from keras import ops


def gradients(model, inputs, terms):
    """Gradients of the chosen loss terms, by variable id, as NumPy arrays."""

    def loss():
        outputs = model(inputs, training=True)
        values = model.loss_terms(outputs)
        total = 0.0
        for name in terms:
            value, weight = values[name]
            weight = ops.cast(weight, "float32")
            total = total + ops.sum(value * weight) / ops.sum(weight)
        return total

    return gradients_of(loss, model)


def gradients_of(loss, model):
    """Gradients of what `loss()` returns, by variable id, as NumPy arrays."""
    variables = model.trainable_variables
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            value = loss()
        found = tape.gradient(value, [v.value for v in variables])
        found = [None if g is None else tf.convert_to_tensor(g) for g in found]
    else:
        import jax

        rest = [v.value for v in model.non_trainable_variables]

        def stateless(trainable):
            mapping = [*zip(variables, trainable, strict=True)]
            mapping += zip(model.non_trainable_variables, rest, strict=True)
            with keras.StatelessScope(mapping):
                return loss()

        found = jax.grad(stateless)([v.value for v in variables])
    return {
        id(v): np.zeros(v.shape) if g is None else np.array(g)
        for v, g in zip(variables, found, strict=True)
    }
