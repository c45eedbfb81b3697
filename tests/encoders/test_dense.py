import keras
import numpy as np
import pytest
from keras import ops

from keras_corrupt.encoders import Dense, TransformerEncoder
from keras_corrupt.encoders.dense import gelu
from tests.conftest import SIZES, gradients_of, make_inputs


def make(activation=None, **options):
    layer = Dense(6, activation, bias_initializer="random_normal", **options)
    layer.build((None, None, 4))
    return layer


def text(rows=3):
    return np.random.default_rng(0).normal(size=(rows, 5, 4)).astype("float32")


def same_as_keras(layer):
    """The layer of Keras with the same variables."""
    theirs = keras.layers.Dense(6, layer.activation)
    theirs.build((None, None, 4))
    theirs.set_weights(layer.get_weights())
    return theirs


@pytest.mark.parametrize("activation", [None, "tanh", gelu(False), gelu(True)])
def test_equals_keras(activation):
    layer = make(activation)
    np.testing.assert_allclose(layer(text()), same_as_keras(layer)(text()), atol=1e-6)


def test_gradient_of_the_bias_adds_up_thousands_of_terms_in_bfloat16():
    layer, x = make(dtype="mixed_bfloat16"), text(rows=1024)
    gradients = gradients_of(lambda: ops.sum(ops.cast(layer(x), "float32")), layer)
    # 5,120 ones; in bfloat16, 256 + 1 is 256
    np.testing.assert_array_equal(gradients[id(layer.bias)], np.full(6, 5120.0))


def test_saves_and_loads():
    layer = make(gelu(approximate=True))
    loaded = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(layer)
    )
    loaded.set_weights(layer.get_weights())
    assert isinstance(loaded, Dense)
    np.testing.assert_array_equal(layer(text()), loaded(text()))


def test_lora_adds_its_product_to_the_kernel():
    layer, x = make(gelu(approximate=True)), text()
    before = np.array(layer(x))
    layer.enable_lora(2)
    assert len(layer.trainable_variables) == 3  # two factors and the bias
    np.testing.assert_allclose(layer(x), before, atol=1e-6)
    layer.lora_kernel_b.assign(np.ones((2, 6)))
    kernel = np.array(layer._kernel) + np.array(layer.lora_kernel_a) @ np.ones((2, 6))
    y = x @ kernel + np.array(layer.bias)
    expected = ops.gelu(y, approximate=True)
    np.testing.assert_allclose(layer(x), expected, atol=1e-5)


@pytest.mark.parametrize("lora", [False, True])
def test_int8_computes_what_keras_quantized_does(lora):
    layer, x = make(gelu(approximate=False)), text()
    theirs, before = same_as_keras(layer), np.array(layer(x))
    for part in (layer, theirs):
        part.quantize("int8")
        if lora:
            part.enable_lora(2, a_initializer="ones", b_initializer="ones")
    assert layer.quantization_mode == "int8"
    np.testing.assert_allclose(layer(x), theirs(x), atol=1e-6)
    if not lora:
        assert 0 < abs(np.array(layer(x)) - before).max() < 0.05


def test_an_encoder_can_be_quantized_and_have_lora():
    config = SIZES["discriminator"] | {"initializer_range": 0.2}
    inputs, encoder = make_inputs(), TransformerEncoder(**config)
    before = np.array(encoder(inputs))
    encoder.quantize("int8")
    quantized = np.array(encoder(inputs))
    assert 0 < abs(quantized - before).mean() < 0.05
    dense = encoder.layers_[0].attention.value
    dense.enable_lora(2, b_initializer="ones")
    assert abs(np.array(encoder(inputs)) - quantized).max() > 1e-3
