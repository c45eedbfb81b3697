"""What the kernels make of a layer equals what the layer computes itself."""

import numpy as np
import pytest
from keras import ops

from keras_corrupt.cpu_kernels import all_replacements
from keras_corrupt.devices.guests import replaced
from keras_corrupt.encoders import (
    Dense,
    TransformerEncoder,
    TransformerLayer,
    masks,
    transformer_layer,
)
from keras_corrupt.encoders.attention import SelfAttention
from keras_corrupt.encoders.dense import gelu
from tests.conftest import SIZES, make_inputs

KERNELS, PLAIN = all_replacements(), {}

BATCH, LENGTH, HIDDEN, HEADS = 3, 7, 16, 4


def make_layer(approximate_gelu=False, dropout=0.0, dtype="float32"):
    layer = TransformerLayer(
        HIDDEN, 24, HEADS, dropout, dropout, 0.3, approximate_gelu, dtype=dtype
    )
    layer.build()
    rng = np.random.default_rng(2)
    for variable in layer.trainable_variables:
        variable.assign(variable + rng.normal(scale=0.3, size=variable.shape))
    return layer


def padding_mask():
    mask = np.random.default_rng(1).random((BATCH, LENGTH)) > 0.3
    mask[:, 0] = True
    return mask


def inputs_of(layer, with_bias, seed=0):
    """A text and a bias of the logits, or none, that are as exact in bfloat16."""
    import tensorflow as tf

    rng = np.random.default_rng(seed)
    x = rng.normal(size=(BATCH, LENGTH, HIDDEN))
    bias = 2 * rng.normal(size=(1, HEADS, LENGTH, LENGTH))
    return [
        tf.cast(tf.cast(a, "bfloat16"), layer.compute_dtype)
        for a in ([x, bias] if with_bias else [x])
    ]


def run(replacements, layer, inputs, mask, training=False):
    """The output, and the gradients of all variables and inputs."""
    import tensorflow as tf

    with tf.GradientTape() as tape, replaced(replacements):
        tape.watch(inputs)
        x, bias = [*inputs, None][:2]
        y = layer(x, mask, bias, training=training)
        y = tf.cast(y, tf.float32)
        weights = tf.reshape(tf.sin(tf.range(tf.size(y), dtype=y.dtype)), y.shape)
        total = tf.reduce_sum(y * weights)
    variables = [v.value for v in layer.trainable_variables]
    gradients = tape.gradient(total, [*inputs, *variables])
    return [np.array(tf.cast(a, tf.float32)) for a in (y, *gradients)]


CASES = {
    "bidirectional": (masks.bidirectional, False, {}),
    "left to right": (masks.left_to_right, False, {}),
    "relative positions": (masks.bidirectional, True, {}),
    "relative positions, right to left": (masks.right_to_left, True, {}),
    "gelu by tanh": (masks.bidirectional, False, {"approximate_gelu": True}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_layer_is_the_same(case):
    make_mask, with_bias, options = CASES[case]
    layer, mask = make_layer(**options), make_mask(padding_mask())
    inputs = inputs_of(layer, with_bias)
    ours, expected = (run(k, layer, inputs, mask) for k in (KERNELS, PLAIN))
    # 16 variables; a key's bias alone moves nothing, for a softmax does not see it.
    assert sum(abs(a).max() > 0.1 for a in expected) == 1 + len(inputs) + 15
    for a, b in zip(ours, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("case", CASES)
def test_a_layer_in_bfloat16_is_as_exact_as_the_plain_one(case):
    make_mask, with_bias, options = CASES[case]
    exact = make_layer(**options)
    coarse = make_layer(**options, dtype="mixed_bfloat16")
    for variable in exact.variables:  # so that rounding them makes no difference
        variable.assign(ops.cast(ops.cast(variable, "bfloat16"), "float32"))
    coarse.set_weights(exact.get_weights())
    mask = make_mask(padding_mask())
    errors = [0.0, 0.0]
    for seed in range(10):  # the errors of one text vary by a fifth
        expected = run(PLAIN, exact, inputs_of(exact, with_bias, seed), mask)
        for i, kernels in enumerate((KERNELS, PLAIN)):
            arrays = run(kernels, coarse, inputs_of(coarse, with_bias, seed), mask)
            errors[i] += 0.1 * np.array(
                [
                    np.linalg.norm(a - b) / np.linalg.norm(b)
                    for a, b in zip(arrays, expected, strict=True)
                    if np.linalg.norm(b) > 0.1  # a key's bias moves nothing
                ]
            )
    ours, plain = errors
    assert plain.max() < 0.05
    assert ours.max() < 0.05
    assert ours.mean() < 1.2 * plain.mean()


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("attention", masks.MASKS)
def test_an_encoder_with_relative_positions_is_the_same(attention, dtype):
    import tensorflow as tf

    config = SIZES["discriminator"] | {"dropout": 0, "attention_dropout": 0}
    encoder = TransformerEncoder(
        **config,
        initializer_range=0.3,
        attention=attention,
        relative_positions={"num_buckets": 8, "max_distance": 16},
        dtype=dtype,
    )
    inputs = make_inputs(batch=64)
    layer = encoder.layers_[0].trainable_variables
    variables = [v.value for v in (encoder.position_bias.table, *layer)]

    def results(replacements):
        @tf.function
        def step():
            with tf.GradientTape() as tape, replaced(replacements):
                y = tf.cast(encoder(inputs, training=True), tf.float32)
                total = tf.reduce_mean(y * tf.sin(tf.range(16.0)))
            return y, *tape.gradient(total, variables)

        return [np.array(a) for a in step()]

    ours, plain = results(KERNELS), results(PLAIN)
    for a, b in zip(ours, plain, strict=True):
        if dtype == "float32":
            np.testing.assert_allclose(a, b, atol=1e-5 * max(1, abs(b).max()))
        elif abs(b).max() > 1e-3:  # but a key's bias, which moves nothing
            assert np.linalg.norm(a - b) < 0.05 * np.linalg.norm(b)
    assert (abs(plain[1]).max(axis=-1) > 1e-5).sum() >= 4


def test_a_query_that_sees_no_key_has_numbers():
    layer = make_layer()
    mask = np.ones((BATCH, 1, LENGTH, LENGTH), bool)
    mask[0, :, 3] = False
    inputs = inputs_of(layer, with_bias=True)
    ours, expected = (run(k, layer, inputs, mask) for k in (KERNELS, PLAIN))
    assert all(np.isfinite(a).all() for a in ours + expected)
    np.testing.assert_allclose(ours[0], expected[0], atol=1e-5, rtol=1e-4)


def set_seeds(layer, seed):
    for part in layer._flatten_layers():
        if hasattr(part, "seed_generator"):
            part.seed_generator.state.assign([seed, 0])


def test_dropout_has_the_mean_and_spread_of_the_plain_layers():
    layer = make_layer(dropout=0.3)
    (x,) = inputs_of(layer, with_bias=False)
    x = ops.repeat(x[:1], 3000, axis=0)
    mask = masks.bidirectional(np.ones((1, LENGTH)))
    draws = []
    for replacements in (KERNELS, PLAIN):
        with replaced(replacements):
            draws.append(np.array(layer(x, mask, training=True)))
    ours, expected = draws
    deviation = expected.std(axis=0)
    assert deviation.min() > 0.1
    error = deviation * (2 / 3000) ** 0.5
    assert (abs(ours.mean(0) - expected.mean(0)) < 5 * error).all()
    np.testing.assert_allclose(ours.std(axis=0), deviation, rtol=0.15)


def test_dropout_is_determined_by_its_seeds():
    layer = make_layer(dropout=0.3)
    inputs, mask = inputs_of(layer, False), masks.bidirectional(padding_mask())
    outputs = []
    for seed in (1, 1, 2):
        set_seeds(layer, seed)
        outputs.append(run(KERNELS, layer, inputs, mask, training=True))
    for a, b in zip(*outputs[:2], strict=True):
        np.testing.assert_array_equal(a, b)
    assert abs(outputs[0][0] - outputs[2][0]).max() > 0.1


def test_a_layer_with_lora_is_the_same():
    layer, mask = make_layer(), masks.bidirectional(padding_mask())
    parts = layer.attention.query, layer.attention.output_projection, layer.intermediate
    for dense in parts:
        dense.enable_lora(2)
        dense.lora_kernel_b.assign(0.3 + ops.zeros_like(dense.lora_kernel_b))
    inputs = inputs_of(layer, with_bias=False)
    ours, expected = (run(k, layer, inputs, mask) for k in (KERNELS, PLAIN))
    assert len(ours) == 2 + 16 + 3
    for a, b in zip(ours, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5, rtol=1e-4)


def test_a_quantized_layer_computes_itself():
    layer, mask = make_layer(), masks.bidirectional(padding_mask())
    (x,) = inputs_of(layer, with_bias=False)
    before = np.array(layer(x, mask))
    layer.intermediate.quantize("int8")
    with replaced(KERNELS):
        quantized = np.array(layer(x, mask))
    np.testing.assert_array_equal(quantized, layer(x, mask))
    assert 0 < abs(quantized - before).max() < 0.1


def test_a_layer_with_a_part_of_another_class_computes_itself(monkeypatch):
    class Doubled(SelfAttention):
        def call(self, x, *args, **kwargs):
            return 2 * super().call(x, *args, **kwargs)

    monkeypatch.setattr(transformer_layer, "SelfAttention", Doubled)
    layer, mask = make_layer(), masks.bidirectional(padding_mask())
    inputs = inputs_of(layer, False)
    ours, expected = (run(k, layer, inputs, mask) for k in (KERNELS, PLAIN))
    for a, b in zip(ours, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("approximate", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_dense_and_gelu_are_the_same(approximate, dtype):
    import tensorflow as tf

    layer = Dense(16, gelu(approximate), dtype=dtype)
    layer.build((None, 8))
    layer.bias.assign(np.random.default_rng(0).normal(size=16))
    (x,) = inputs_of(layer, False)
    results = []
    for replacements in (KERNELS, PLAIN):
        with tf.GradientTape() as tape, replaced(replacements):
            y = tf.cast(layer(x[..., :8]), tf.float32)
            total = tf.reduce_sum(y * tf.sin(tf.cast(x, tf.float32)))
        gradients = tape.gradient(total, [v.value for v in layer.trainable_variables])
        results.append([np.array(a) for a in (y, *gradients)])
    tolerance = 1e-5 if dtype == "float32" else 2e-2
    for a, b in zip(*results, strict=True):
        assert abs(b).max() > 0.1
        np.testing.assert_allclose(a, b, atol=tolerance, rtol=tolerance)
    # Computed in bfloat16, half of the values would differ.
    assert np.mean(results[0][0] != results[1][0]) < (
        0.9 if dtype == "float32" else 0.01
    )
