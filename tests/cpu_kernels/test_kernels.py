import functools

import keras
import numpy as np
import pytest
from keras import ops

from keras_corrupt.corruption import sample_negatives, sample_tokens
from keras_corrupt.cpu_kernels import all_replacements
from keras_corrupt.devices.guests import replaced
from keras_corrupt.heads import softmax

#: Function of the core -> its kernel.
KERNELS = all_replacements()

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
    "output_logits": (
        [(BATCH, LENGTH, 50), (50,)],
        lambda k, x, b: k.output_logits(x, b),
    ),
    "cross_entropy": (
        [(BATCH, LENGTH, 50)],
        lambda k, x: k.cross_entropy(30.0 * x, np.arange(21).reshape(BATCH, LENGTH)),
    ),
    "cross_entropy of products and a bias": (
        [(BATCH, LENGTH, 50), (50,)],
        lambda k, x, b: k.cross_entropy(
            k.output_logits(30.0 * x, b), np.arange(21).reshape(BATCH, LENGTH)
        ),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_kernel_equals_what_it_replaces(case):
    from keras_corrupt.cpu_kernels import vocabulary

    shapes, call = CASES[case]
    assert_agree(
        lambda *inputs: call(softmax, *inputs),
        lambda *inputs: call(vocabulary, *inputs),
        arrays(*shapes),
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("replacements", [{}, KERNELS], ids=["plain", "kernels"])
def test_gradients_of_the_cross_entropy_are_those_that_tensorflow_finds(
    replacements, dtype
):
    import tensorflow as tf

    products, bias, upstream = arrays((BATCH, LENGTH, 50), (50,), (BATCH, LENGTH))
    products = tf.cast(3.0 * products, dtype)
    target_ids = np.arange(21).reshape(BATCH, LENGTH)
    with tf.GradientTape() as tape:
        tape.watch([products, bias])
        logits = softmax.output_logits(products, bias)
        loss = tf.reduce_sum(upstream * softmax.cross_entropy(logits, target_ids))
    expected = tape.gradient(loss, [products, bias])
    with replaced(replacements):
        found = softmax.cross_entropy_gradients(products, bias, target_ids, upstream)
    assert found[0].dtype == products.dtype and found[1].dtype == bias.dtype
    atol = 2e-6 if dtype == "float32" else 1e-2
    for a, b in zip(found, expected, strict=True):
        a, b = (np.array(tf.cast(x, "float32")) for x in (a, b))
        assert np.abs(b).max() > 0.1
        np.testing.assert_allclose(a, b, atol=atol)


class TwoWords:
    """A seed generator that always gives the same."""

    def next(self):
        import tensorflow as tf

        return tf.constant([5, 6], "uint32")


def kept(shape, rate):
    """Which values are not dropped: what becomes of softmax weights that are even."""
    import tensorflow as tf

    weights = attention_weights(tf.zeros(shape), 1.0, True, None, rate, TwoWords())
    return np.array(weights) > 0


def attention_weights(logits, *args):
    """Weighs unit vectors."""
    import tensorflow as tf

    from keras_corrupt.cpu_kernels.attention import weigh

    units = tf.eye(logits.shape[-1], batch_shape=logits.shape[:2])
    return weigh(logits, units, *args)


def test_dropout_of_the_residual_and_its_gradient():
    from keras_corrupt.cpu_kernels.residual_norm import residual_norm

    x, y, bias, gamma, beta = arrays(X, X, (HIDDEN,), (HIDDEN,), (HIDDEN,))
    mask = kept((BATCH, 1, LENGTH, HIDDEN), 0.25).reshape(X)
    assert 0.6 < mask.mean() < 0.9

    def by_hand(x, y, bias, gamma, beta):
        y = (y + bias) * mask / 0.75
        return ops.layer_normalization(x + y, gamma, beta, epsilon=1e-12)

    def kernel(x, y, bias, gamma, beta):
        return residual_norm(x, y, bias, gamma, beta, 1e-12, 0.25, TwoWords())

    assert_agree(by_hand, kernel, [x, y, bias, gamma, beta])


def test_dropout_of_the_attention_weights_and_its_gradient():
    from keras_corrupt.cpu_kernels.attention import weigh

    pairs = (BATCH, HEADS, LENGTH, LENGTH)
    logits, value = arrays(pairs, (BATCH, HEADS, LENGTH, HIDDEN // HEADS))
    dropped_too = kept(pairs, 0.25)

    def by_hand(logits, value):
        softmax = ops.softmax(ops.where(mask(), 0.5 * logits, -1e9))
        return ops.matmul(softmax * dropped_too / 0.75, value)

    def kernel(logits, value):
        return weigh(logits, value, 0.5, mask(), None, 0.25, TwoWords())

    assert_agree(by_hand, kernel, [logits, value])


def test_dropout_drops_the_rate_independently():
    import tensorflow as tf

    seed, rate, shape = keras.random.SeedGenerator(0), 0.1, (50, 4, 70, 70)
    draws = [
        np.array(attention_weights(tf.zeros(shape), 1.0, True, None, rate, seed)) == 0
        for _ in range(2)
    ]
    a, b = draws
    flat = a.ravel()
    # Two draws, neighbours in a row, below each other, and in sequences and heads.
    pairs = [
        (a, b),
        (flat[1:], flat[:-1]),
        (flat[70:], flat[:-70]),
        (a[:, 1:], a[:, :-1]),
        (a[1:], a[:-1]),
        (a[:, :, ::2], b[:, :, 1::2]),
    ]
    for draw in draws:
        deviation = (rate * (1 - rate) / draw.size) ** 0.5
        assert abs(draw.mean() - rate) < 4 * deviation
    for one, other in pairs:
        deviation = (rate**2 * (1 - rate**2) / one.size) ** 0.5
        assert abs((one & other).mean() - rate**2) < 4 * deviation


def test_pieces_and_shapes_that_vary_change_nothing():
    """A graph runs the kernels in threads."""
    import tensorflow as tf

    from keras_corrupt.cpu_kernels.gelu import bias_gelu
    from keras_corrupt.cpu_kernels.residual_norm import residual_norm

    width = 512

    def kernel_layer(x, bias):
        x = bias_gelu(x, bias)
        return residual_norm(x, 2 * x, bias, bias, bias, 1e-6)

    def plain_layer(x, bias):
        x = ops.gelu(x + bias, approximate=False)
        return ops.layer_normalization(3 * x + bias, bias, bias, epsilon=1e-6)

    def step(layer, x, bias):
        with tf.GradientTape() as tape:
            tape.watch((x, bias))
            y = layer(layer(x, bias), bias)
            total = tf.reduce_sum(y * tf.sin(100 * x))
        return y, *tape.gradient(total, (x, bias))

    graph = tf.function(functools.partial(step, kernel_layer), reduce_retracing=True)
    rng = np.random.default_rng(0)
    for batch, length in ((4, 96), (2, 32), (4, 96), (3, 70), (4, 96), (2, 32)):
        x = tf.constant(rng.normal(size=(batch, length, width)), "float32")
        bias = tf.constant(rng.normal(size=width), "float32")
        for one, other in zip(graph(x, bias), step(plain_layer, x, bias), strict=True):
            np.testing.assert_allclose(one, other, atol=2e-3, rtol=1e-3)


def test_a_result_without_memory_is_an_error():
    import tensorflow as tf

    from keras_corrupt.cpu_kernels.gelu import _normal_forward
    from keras_corrupt.cpu_kernels.program import run

    x, bias = arrays((4, 8), (8,))
    with pytest.raises(tf.errors.ResourceExhaustedError):
        run(_normal_forward, [x], [((4, 2**50), tf.float32)], bias)


def test_what_is_no_number_stays_none():
    import tensorflow as tf

    from keras_corrupt.cpu_kernels.gelu import bias_gelu
    from keras_corrupt.cpu_kernels.residual_norm import residual_norm

    x, bias = (np.array(a) for a in arrays((2, 3, HIDDEN), (HIDDEN,)))
    x[1, 2, 3] = np.nan
    for y in (
        bias_gelu(tf.constant(x), tf.constant(bias)),
        residual_norm(*map(tf.constant, (x, x, bias, bias, bias)), 1e-6),
        KERNELS[softmax.cross_entropy](tf.constant(x), np.zeros((2, 3), int))[
            ..., None
        ],
    ):
        lost = np.isnan(np.array(y))
        assert lost[1, 2].any() and not lost[0].any() and not lost[1, :2].any()


def test_likeliest_is_the_first_of_the_largest():
    import tensorflow as tf

    logits = np.random.default_rng(0).integers(0, 40, (5, 7, 300)).astype("float32")
    for replacements in (KERNELS, {}):
        with replaced(replacements):
            ids = np.array(softmax.likeliest(tf.constant(logits)))
        np.testing.assert_array_equal(ids, logits.argmax(axis=-1))


def test_logits_are_the_same_computed_or_not():
    products, bias = arrays((5, 7, 300), (300,))
    logits = KERNELS[softmax.output_logits](products, bias)
    computed = np.array(logits)
    np.testing.assert_array_equal(computed, np.array(products) + np.array(bias))
    for draw in (
        lambda x: KERNELS[softmax.likeliest](x),
        lambda x: KERNELS[sample_tokens](x, keras.random.SeedGenerator(0)),
        lambda x: KERNELS[sample_negatives](
            x, np.ones((5, 7)), 4, keras.random.SeedGenerator(0)
        ),
    ):
        np.testing.assert_array_equal(draw(logits), draw(computed))
    assert (
        np.array(KERNELS[softmax.likeliest](logits)) != np.array(products).argmax(-1)
    ).any()


def test_a_target_outside_the_vocabulary_has_no_loss():
    (logits,) = arrays((1, 3, 5))
    loss = np.array(KERNELS[softmax.cross_entropy](logits, np.array([[0, 5, -1]])))
    assert np.isnan(loss).tolist() == [[False, True, True]]


def test_exp_is_right_to_two_units_in_the_last_place():
    from keras_corrupt.cpu_kernels.numbers import exp

    x = np.linspace(-87, 88, 20_001, dtype="float32")
    y, exact = np.array([exp(v) for v in x]), np.exp(x.astype("float64"))
    assert np.abs(y / exact - 1).max() < 2 * 2.0**-23
    assert exp(np.float32(-np.inf)) == exp(np.float32(-87.1)) == 0


def test_what_is_masked_is_not_seen_at_all():
    # So far apart that one key has nearly all the weight: no other is rounded to zero.
    logits = 30 * arrays((BATCH, HEADS, LENGTH, LENGTH))[0]
    _, gradient = values_and_gradients(
        lambda x: attention_weights(x, 0.5, mask(), None, 0.25, TwoWords()), [logits]
    )
    weights = np.array(attention_weights(logits, 0.5, mask(), None, 0.25, TwoWords()))
    masked = np.broadcast_to(~mask(), logits.shape)
    assert masked.any() and (weights[masked] == 0).all()
    assert (np.array(gradient)[masked] == 0).all()


def test_an_excluded_id_outside_the_vocabulary_excludes_nothing():
    (logits,) = arrays((3, 300))
    excluded, seed = np.array([-1, 300, 10**6]), keras.random.SeedGenerator(0)
    ids = np.array(KERNELS[sample_negatives](logits, excluded, 300, seed))
    assert np.sort(ids).tolist() == [list(range(300))] * 3


def test_samples_of_no_numbers_are_tokens():
    import tensorflow as tf

    logits = tf.fill((4, 300), np.nan)
    seed = keras.random.SeedGenerator(0)
    ids = np.array(KERNELS[sample_negatives](logits, np.arange(4), 3, seed))
    assert ((ids >= 0) & (ids < 300)).all()


def test_kernels_run_where_functions_are_run_eagerly():
    import tensorflow as tf

    from keras_corrupt.cpu_kernels.gelu import bias_gelu

    x, bias = arrays((4, 8), (8,))
    tf.config.run_functions_eagerly(True)
    try:
        y = bias_gelu(x, bias)
    finally:
        tf.config.run_functions_eagerly(False)
    np.testing.assert_allclose(y, ops.gelu(x + bias, approximate=False), atol=1e-6)
