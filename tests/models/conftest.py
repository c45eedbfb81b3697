import keras
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
        total = 0.0
        for name in terms:
            value, weight = model.objectives[name].loss(outputs)
            weight = ops.cast(weight, "float32")
            total = total + ops.sum(value * weight) / ops.sum(weight)
        return total

    return gradients_of(loss, model)


def arrays(outputs, dtype=None):
    """What a model's `call` returned, as NumPy arrays."""
    return keras.tree.map_structure(lambda x: np.array(x, dtype), outputs)


def with_right_predictions(outputs, logits=None):
    """The outputs, with targets that are predicted and sampled in unused slots.

    In the first example, too, so that some predictions count as right.
    """
    logits = outputs["mlm"].logits if logits is None else logits
    texts = {n: x for n, x in outputs.items() if hasattr(x, "target_ids")}
    right = np.array([*texts.values()][0].masking.weights) == 0
    assert 0 < right.sum() < right[1:].size
    right[0] = True

    def changed(record):
        names = {"target_ids", "sampled_ids"} & {*record._fields}
        likeliest = np.argmax(logits, -1)
        new = {n: np.where(right, likeliest, getattr(record, n)) for n in names}
        return record._replace(**{n: x.astype("int32") for n, x in new.items()})

    return outputs | {name: changed(record) for name, record in texts.items()}


def kill(model):
    """Makes the layer norms give every token the same vector."""
    for variable in model.trainable_variables:
        name = variable.path.rsplit("/", 1)[-1]
        if name in ("gamma", "beta"):
            variable.assign(np.full(variable.shape, float(name == "beta")))
