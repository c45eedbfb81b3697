import keras
import numpy as np
import pytest
from keras import ops

from keras_corrupt.kernels import fused, plain

pytestmark = pytest.mark.tensorflow_only

BATCH, LENGTH, HIDDEN, HEADS = 3, 7, 16, 4
X = (BATCH, LENGTH, HIDDEN)


def arrays(*shapes):
    import tensorflow as tf

    rng = np.random.default_rng(0)
    return [tf.constant(rng.normal(size=shape), "float32") for shape in shapes]


def values_and_gradients(function, inputs):
    """What `function` returns and the gradients of a sum with uneven weights."""
    import tensorflow as tf

    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = function(*inputs)
        weights = tf.reshape(tf.sin(tf.range(tf.size(y), dtype=y.dtype)), y.shape)
        total = tf.reduce_sum(y * weights)
    return [y, *tape.gradient(total, inputs)]


def assert_agree(one, other, inputs, atol=2e-6):
    a, b = (values_and_gradients(f, inputs) for f in (one, other))
    assert sum(np.abs(x).max() > 0.1 for x in a) >= len(inputs)
    for x, y in zip(a, b, strict=True):
        np.testing.assert_allclose(x, y, atol=atol, rtol=1e-4)


def mask():
    return np.random.default_rng(1).random((BATCH, 1, 1, LENGTH)) > 0.3


CASES = {
    "gelu": ([X, (HIDDEN,)], lambda k, x, b: k.bias_gelu(x, b)),
    "gelu by tanh": ([X, (HIDDEN,)], lambda k, x, b: k.bias_gelu(x, b, True)),
    "residual_norm": (
        [X, X, (HIDDEN,), (HIDDEN,), (HIDDEN,)],
        lambda k, x, y, b, gamma, beta: k.residual_norm(x, y, b, gamma, beta, 1e-12),
    ),
    "cross_entropy": (
        [(BATCH, LENGTH, 50)],
        lambda k, x: k.cross_entropy(30.0 * x, np.arange(21).reshape(BATCH, LENGTH)),
    ),
    "attention": (
        [(BATCH, LENGTH, 3 * HIDDEN), (3 * HIDDEN,)],
        lambda k, x, b: k.attention(x, b, HEADS, mask()),
    ),
    "attention with a bias of the logits": (
        [(BATCH, LENGTH, 3 * HIDDEN), (3 * HIDDEN,), (1, HEADS, LENGTH, LENGTH)],
        lambda k, x, b, bias: k.attention(x, b, HEADS, mask(), bias),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_fused_equals_plain(case):
    shapes, call = CASES[case]
    assert_agree(
        lambda *inputs: call(plain, *inputs),
        lambda *inputs: call(fused, *inputs),
        arrays(*shapes),
    )


def test_bfloat16_is_computed_in_float32():
    x, bias = arrays((64, 16), (16,))
    low = ops.cast(x, "bfloat16")
    y = fused.bias_gelu(low, bias)
    expected = ops.cast(plain.bias_gelu(ops.cast(low, "float32"), bias), "bfloat16")
    assert keras.backend.standardize_dtype(y.dtype) == "bfloat16"
    # Computed in bfloat16, half of the values would differ.
    y, expected = (np.array(ops.cast(z, "float32")) for z in (y, expected))
    assert np.mean(y != expected) < 0.01
    np.testing.assert_allclose(y, expected, rtol=2**-7, atol=1e-6)


def test_dropout_of_the_residual_and_its_gradient():
    x, y, bias, gamma, beta = arrays(X, X, (HIDDEN,), (HIDDEN,), (HIDDEN,))
    bytes_ = fused.random_bytes(X, 64, keras.random.SeedGenerator(5))
    kept = np.array(bytes_) >= 64  # 64 of 256 values: a quarter is dropped

    def by_hand(x, y, bias, gamma, beta):
        y = (y + bias) * kept / 0.75
        return plain.residual_norm(x, y, 0 * bias, gamma, beta, 1e-12)

    def kernel(x, y, bias, gamma, beta):
        seed = keras.random.SeedGenerator(5)
        return fused.residual_norm(x, y, bias, gamma, beta, 1e-12, 0.25, seed)

    assert_agree(by_hand, kernel, [x, y, bias, gamma, beta])


def test_dropout_of_the_attention_weights_and_its_gradient():
    (logits,) = arrays((BATCH, HEADS, LENGTH, LENGTH))
    kept = fused.random_bytes(logits.shape, 64, keras.random.SeedGenerator(5)) >= 64

    def by_hand(logits):
        softmax = ops.softmax(ops.where(mask(), 0.5 * logits, -1e9))
        return softmax * ops.cast(kept, "float32") / 0.75

    def kernel(logits):
        return fused.attention_weights(
            logits, 0.5, mask(), 0.25, keras.random.SeedGenerator(5)
        )

    assert_agree(by_hand, kernel, [logits])


def test_dropout_drops_the_rounded_rate_independently():
    seed = keras.random.SeedGenerator(0)
    dropped = fused.dropped_byte(0.1)
    assert dropped == 26  # a rate of 0.1016
    draws = [
        np.array(fused.random_bytes((100, 1001), dropped, seed)) < dropped
        for _ in range(2)
    ]
    size = draws[0].size
    rate = dropped / 256
    deviation = (rate * (1 - rate) / size) ** 0.5
    for draw in draws:
        assert abs(draw.mean() - rate) < 4 * deviation
    both = (draws[0] & draws[1]).mean()
    assert abs(both - rate**2) < 4 * (rate**2 * (1 - rate**2) / size) ** 0.5


def test_inference_does_not_compile():
    assert kernels_for(training=False) is plain
    assert kernels_for(training=True) is fused
