import numpy as np
import pytest
from keras import ops

from tests.conftest import gradients_of
from tests.data.conftest import corpus, prepared, settings  # noqa: F401


@pytest.fixture(autouse=True, scope="module")
def few_steps(eager):
    """Tests of this folder make few."""


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


def with_right_predictions(outputs, logits="mlm_logits"):
    """The outputs, with targets that are predicted and sampled in unused slots.

    In the first example, too, so that some predictions count as right.
    """
    right = np.array(outputs["masked_weights"]) == 0
    assert 0 < right.sum() < right[1:].size
    right[0] = True
    likeliest = np.argmax(outputs[logits], -1)
    return outputs | {
        name: np.where(right, likeliest, outputs[name]).astype("int32")
        for name in ("target_ids", "sampled_ids")
        if name in outputs
    }


def kill(model):
    """Makes the layer norms give every token the same vector."""
    for variable in model.trainable_variables:
        name = variable.path.rsplit("/", 1)[-1]
        if name in ("gamma", "beta"):
            variable.assign(np.full(variable.shape, float(name == "beta")))
