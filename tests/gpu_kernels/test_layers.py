"""The kernels, interpreted, compute what the core says, with the same dropout."""

import functools

import keras
import numpy as np
import pytest
from keras import ops

from keras_corrupt import gpu_kernels
from keras_corrupt.devices import flash_attention
from keras_corrupt.devices.guests import replaced
from keras_corrupt.encoders.transformer_layer import TransformerLayer
from keras_corrupt.gpu_kernels import replacements

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "jax", reason="the kernels are JAX's"
)

MASK = (np.arange(32) < np.array([[32], [20], [0], [9]]))[:, None, None]


def make_layer(hidden):
    layer = TransformerLayer(hidden, 96, 2, 0.3, 0.3, 0.2)
    layer.build()
    rng = np.random.default_rng(1)
    for variable in layer.trainable_variables:  # biases and norms, too
        variable.assign(variable + rng.normal(0, 0.3, variable.shape))
    return layer


def computed(layer, training, calls):
    """Returns a layer's output, and the gradients of its input and its weights."""
    import jax

    rng = np.random.default_rng(2)
    x, weights = rng.normal(size=(2, 4, 32, layer.hidden_size)).astype("float32")
    state = [np.array(v) for v in layer.non_trainable_variables]

    def loss(trainable, x):
        found, _ = layer.stateless_call(trainable, state, x, MASK, training=training)
        return ops.sum(found * weights), found

    trainable = [np.array(v) for v in layer.trainable_variables]
    with replaced(calls):
        step = jax.jit(jax.value_and_grad(loss, (0, 1), has_aux=True))
        (_, found), (of_weights, of_input) = step(trainable, x)
    return [np.array(x) for x in (found, of_input, *of_weights)]


def interpreted():
    from keras_corrupt.gpu_kernels.transformer import transformer_layer

    return {TransformerLayer.call: functools.partial(transformer_layer, interpret=True)}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("hidden", [64, 192])  # a row in one part, and in three
def test_a_layer_computes_what_the_core_says(hidden, training):
    layer = make_layer(hidden)
    expected, found = (computed(layer, training, c) for c in ({}, interpreted()))
    assert len(found) == 2 + 16
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
    if training:
        assert np.abs(found[0] - computed(layer, False, {})[0]).max() > 0.1


def test_half_precision_rounds_inputs_and_outputs_alone():
    import jax

    from keras_corrupt.gpu_kernels.residual_norm import residual_norm

    rng, seed = np.random.default_rng(3), ops.convert_to_tensor([7, 9], "uint32")
    rows, vectors = rng.normal(size=(3, 128, 64)), rng.normal(size=(3, 64))

    def step(dtype):
        x, y, weights = (ops.cast(ops.cast(r, "bfloat16"), dtype) for r in rows)

        def loss(*inputs):
            found = residual_norm(*inputs, seed, 1e-12, 0.1, interpret=True)
            return ops.sum(ops.cast(found * weights, "float32")), found

        step = jax.value_and_grad(loss, (0, 1, 2), has_aux=True)
        (_, found), gradients = step(x, y, ops.cast(vectors, "float32"))
        return found, *gradients

    for found, exact in zip(step("bfloat16"), step("float32"), strict=True):
        exact = np.array(exact)
        error = np.linalg.norm(np.array(found, "float32") - exact)
        assert error < 5e-3 * np.linalg.norm(exact)


def test_they_are_asked_for_by_a_variable(monkeypatch):
    model = None  # any one
    monkeypatch.setattr(flash_attention, "is_available", lambda: True)
    monkeypatch.delenv(gpu_kernels.SWITCH, raising=False)
    assert not replacements(model)
    monkeypatch.setenv(gpu_kernels.SWITCH, "on")
    assert [*replacements(model)] == [TransformerLayer.call]
    devices = keras.distribution.list_devices()[:1]
    with keras.distribution.DataParallel(devices=devices).scope():
        assert not replacements(model)
    monkeypatch.setattr(flash_attention, "is_available", lambda: False)
    assert not replacements(model)
    monkeypatch.setenv(gpu_kernels.SWITCH, "plain")
    with pytest.raises(ValueError, match="LAYER_KERNELS must be on, off or not set"):
        replacements(model)
