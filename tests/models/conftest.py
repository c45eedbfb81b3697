import numpy as np
from keras import ops

from tests.conftest import gradients_of
from tests.data.conftest import corpus, prepared, settings  # noqa: F401


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


def kill(model):
    """Makes the layer norms give every token the same vector."""
    for variable in model.trainable_variables:
        name = variable.path.rsplit("/", 1)[-1]
        if name in ("gamma", "beta"):
            variable.assign(np.full(variable.shape, float(name == "beta")))
