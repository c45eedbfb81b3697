import keras
import numpy as np
import pytest
from keras import ops

from keras_corrupt.training import AdamW, WarmupLinearDecay
from keras_corrupt.training.optimizer import hooks
from tests.conftest import COMPILED

RNG = np.random.default_rng(0)


class Tower(keras.Model):
    """Variables of the kinds an encoder has."""

    def __init__(self, seed=0):
        super().__init__()
        self.table = keras.layers.Embedding(7, 4, name="table")
        self.layer_0 = keras.layers.Dense(4, name="layer_0")
        self.norm = keras.layers.LayerNormalization(name="norm")
        self.layer_1 = keras.layers.Dense(1, name="layer_1")
        self.layer_0.build((None, 4))
        self.norm.build((None, 4))
        self.layer_1.build((None, 4))
        self.table.build()
        rng = np.random.default_rng(seed)
        for v in self.trainable_variables:
            v.assign(rng.normal(size=v.shape))

    def call(self, x):
        # a product, not a look-up: Keras's own optimizers mistake repeated tokens
        h = ops.mean(ops.one_hot(x, 7) @ self.table.embeddings, axis=1)
        return self.layer_1(self.norm(ops.tanh(self.layer_0(h))))


X = RNG.integers(0, 7, (32, 5))
Y = RNG.normal(size=(32, 1)).astype("float32")


def train(optimizer, epochs=3, batch_size=8, model=None):
    model = model or Tower()
    model.compile(optimizer=optimizer, loss="mse", jit_compile=COMPILED)
    model.fit(X, Y, batch_size=batch_size, epochs=epochs, shuffle=False, verbose=0)
    return model


def weights(model):
    return [np.array(v) for v in model.trainable_variables]


def assert_same(a, b, **tolerance):
    for x, y in zip(weights(a), weights(b), strict=True):
        np.testing.assert_allclose(x, y, **tolerance)


def test_equals_keras_without_the_differences():
    ours = train(AdamW(0.01, weight_decay=0.02, no_decay="nothing", epsilon=1e-6))
    theirs = keras.optimizers.AdamW(0.01, weight_decay=0.02, epsilon=1e-6)
    assert_same(ours, train(theirs), rtol=1e-5, atol=1e-6)


class LookUp(Tower):
    def call(self, x):
        h = ops.mean(self.table(x), axis=1)
        return self.layer_1(self.norm(ops.tanh(self.layer_0(h))))


def test_a_look_up_trains_as_the_product_with_one_hot_vectors():
    def optimizer():
        return AdamW(0.01, epsilon=0.01, global_clipnorm=0.1)

    assert_same(
        train(optimizer()), train(optimizer(), model=LookUp()), rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize("correct", [True, False])
def test_equals_numpy(correct):
    """Epsilon is large enough to tell where it is added."""
    optimizer = AdamW(0.1, weight_decay=0.05, bias_correction=correct, epsilon=1e-2)
    variable = keras.Variable([1.0, -2.0, 3.0], name="kernel")
    optimizer.build([variable])
    x, m, v = np.array([1.0, -2.0, 3.0]), np.zeros(3), np.zeros(3)
    for t in range(1, 6):
        g = RNG.normal(size=3).astype("float32")
        optimizer.apply([ops.convert_to_tensor(g)])
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g**2
        scale = np.sqrt(1 - 0.999**t) / (1 - 0.9**t) if correct else 1.0
        x = x - 0.1 * (scale * m / (np.sqrt(v) + 1e-2) + 0.05 * x)
    np.testing.assert_allclose(np.array(variable), x, rtol=1e-4)


def test_norm_of_the_last_gradient_is_of_all_variables_and_unclipped():
    optimizer = AdamW(0.1, global_clipnorm=0.5)
    variables = [keras.Variable([1.0, 2.0]), keras.Variable([[3.0]])]
    optimizer.build(variables)
    for gradients in ([[9.0, 9.0], [[9.0]]], [[2.0, -3.0], [[6.0]]]):
        optimizer.apply([ops.convert_to_tensor(g) for g in gradients])
    assert float(optimizer.gradient_norm) == 7.0  # 4 + 9 + 36 = 49


@pytest.mark.parametrize(
    "dtype, precision", [("bfloat16", 2**-8), ("float16", 2**-11), ("float64", 2**-20)]
)
def test_equals_numpy_in_every_float_type(dtype, precision):
    """The gradients' squares are too small for float16, and 0.999 for bfloat16."""
    if dtype == "float64" and keras.backend.backend() == "jax":
        pytest.skip("JAX has 64 bits only where its setting says so.")
    optimizer = AdamW(0.1, weight_decay=0.0, epsilon=1e-7)
    variable = keras.Variable([1.0, -2.0, 3.0], dtype=dtype, name="kernel")
    optimizer.build([variable])
    x, m, v = np.array([1.0, -2.0, 3.0]), np.zeros(3), np.zeros(3)
    for t in range(1, 6):
        g = np.array([2.0, -1.0, 3.0]) * 1e-5 * t
        g = ops.convert_to_tensor(g, dtype)
        optimizer.apply([g])
        g = np.array(ops.cast(g, "float32"), "float64")
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g**2
        scale = np.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        x = x - 0.1 * scale * m / (np.sqrt(v) + 1e-7)
    found = np.array(ops.cast(variable, "float32"))
    # Each update rounds a number between 1 and 4 to the type.
    np.testing.assert_allclose(found, x, atol=5 * 2 * precision)
    assert variable.dtype == dtype


def test_averages_and_accumulated_gradients_of_16_bits_have_32():
    """The same small numbers in float32 end at the same, but for its rounding."""
    options = {"use_ema": True, "gradient_accumulation_steps": 2, "epsilon": 1e-6}
    found = []
    for dtype in ("float16", "float32"):
        optimizer = AdamW(0.5, ema_momentum=0.9, **options)
        variable = keras.Variable([1.0, -2.0], dtype=dtype, name="kernel")
        optimizer.build([variable])
        for scale in range(1, 9):
            g = ops.convert_to_tensor(np.array([2.0, -3.0]) * 2.0**-20 * scale, dtype)
            optimizer.apply([g])
        optimizer.finalize_variable_values([variable])
        found.append(np.array(ops.cast(variable, "float32")))
    np.testing.assert_allclose(*found, atol=4 * 2**-10)
    assert (np.abs(found[0] - [1.0, -2.0]) > 0.1).all()


def test_weight_decay_leaves_out_norms_and_biases():
    """With zero gradients only decay moves a weight; so on every backend, in `fit`."""
    model = Tower()
    before = {v.path: np.array(v) for v in model.trainable_variables}

    class Still(Tower):
        def compute_loss(self, x, y, y_pred, sample_weight=None, training=True):
            return 0.0 * ops.sum(y_pred)

    still = Still()
    train(AdamW(0.1, weight_decay=0.5), 1, 32, still)
    for variable, old in zip(still.trainable_variables, before.values(), strict=True):
        decayed = variable.name in ("kernel", "embeddings")
        expected = old * (1 - 0.1 * 0.5) if decayed else old
        np.testing.assert_allclose(np.array(variable), expected, rtol=1e-5)


def test_rate_multipliers_scale_each_variables_update():
    factors = {"layer_0/": 0.25, "layer_1/": 0.5, "table/": 0.0}
    scaled = train(AdamW(1e-3, rate_multipliers=factors), epochs=1, batch_size=32)
    plain = train(AdamW(1e-3), epochs=1, batch_size=32)
    start = weights(Tower())
    for v, a, b, s in zip(
        plain.trainable_variables, weights(scaled), weights(plain), start, strict=True
    ):
        factor = next((f for p, f in factors.items() if p in v.path), 1.0)
        np.testing.assert_allclose(a - s, factor * (b - s), rtol=1e-2, atol=1e-7)


def test_accumulation_equals_the_large_batch():
    schedule = WarmupLinearDecay(0.05, total_steps=4, warmup_steps=2)
    # a large epsilon keeps Adam from magnifying the rounding of small gradients
    options = {"global_clipnorm": 0.5, "weight_decay": 0.1, "epsilon": 0.1}
    large = train(AdamW(schedule, **options), epochs=2, batch_size=16)
    small = AdamW(schedule, gradient_accumulation_steps=2, **options)
    assert_same(large, train(small, epochs=2, batch_size=8), rtol=1e-3, atol=1e-4)
    assert int(small.iterations) == 4
    assert float(small.learning_rate) == 0.0  # the schedule has run to its end


@pytest.mark.parametrize("accumulate", [None, 2])
def test_moving_average_begins_at_the_first_update_and_advances_once_each(accumulate):
    optimizer = AdamW(
        0.1,
        use_ema=True,
        ema_momentum=0.75,
        gradient_accumulation_steps=accumulate,
    )
    variable = keras.Variable([1.0, -2.0, 3.0], name="kernel")
    optimizer.build([variable])
    (average,) = optimizer._model_variables_moving_average
    expected = None
    for _ in range(4):
        for _ in range(accumulate or 1):
            gradient = RNG.normal(size=3).astype("float32")
            optimizer.apply([ops.convert_to_tensor(gradient)])
        new = np.array(variable)
        expected = new if expected is None else 0.75 * expected + 0.25 * new
        np.testing.assert_allclose(np.array(average), expected, rtol=1e-5)
    optimizer.finalize_variable_values([variable])  # as `fit` does in the end
    np.testing.assert_allclose(np.array(variable), expected, rtol=1e-5)
    assert np.abs(new - expected).max() > 0.01


def test_clipping_is_by_the_global_norm():
    optimizer = AdamW(1.0, beta_1=0.0, global_clipnorm=1.0, weight_decay=0.0)
    variables = [keras.Variable(np.zeros(2), name="kernel") for _ in range(2)]
    optimizer.build(variables)
    optimizer.apply(
        [ops.convert_to_tensor([3.0, 0.0]), ops.convert_to_tensor([0.0, 4.0])]
    )
    first, second = (np.array(m) for m in optimizer._momentums)
    np.testing.assert_allclose(first, [0.6, 0.0], rtol=1e-6)
    np.testing.assert_allclose(second, [0.0, 0.8], rtol=1e-6)


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="flat on JAX alone")
@pytest.mark.parametrize(
    "options",
    [
        {"global_clipnorm": 0.5},
        {"clipnorm": 0.1, "bias_correction": False},
        {"clipvalue": 0.1, "use_ema": True, "ema_momentum": 0.75},
        {"use_ema": True, "gradient_accumulation_steps": 2, "global_clipnorm": 0.5},
        {"rate_multipliers": {"pointwise": 0.5, "bias": 0.0}},
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_flat_arrays_come_to_the_same(options, dtype):
    """Some variables are decayed; the last one has another type."""
    shapes = {"kernel": (3, 4), "bias": (4,), "pointwise_kernel": (4, 2), "gamma": ()}
    found = []
    for flat in (False, True):
        rng = np.random.default_rng(1)
        optimizer = AdamW(0.1, weight_decay=0.2, **options)
        variables = [
            keras.Variable(rng.normal(size=shape), dtype="float32", name=name)
            for name, shape in shapes.items()
        ]
        variables.append(keras.Variable(rng.normal(size=5), dtype=dtype, name="table"))
        optimizer.build(variables)
        optimizer.flat = flat
        for _ in range(4):
            optimizer.apply(
                [
                    ops.convert_to_tensor(rng.normal(size=v.shape), v.dtype)
                    for v in variables
                ]
            )
        found.append([np.array(v, "float32") for v in variables + optimizer.variables])
    # Only the norm of all gradients is added up in another order.
    rtol = 1e-6 if "global_clipnorm" in options else 0
    for variable, one, other in zip(
        variables + optimizer.variables, *found, strict=True
    ):
        is_norm = variable is optimizer.gradient_norm
        tolerance = 1e-6 if is_norm else rtol
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=rtol)


def test_keras_calls_what_is_overridden(monkeypatch):
    """A release that no longer did would leave clipping or averaging out, silently."""
    called = set()

    def spy_on(name, method):
        def spied(self, *args):
            called.add(name)
            return method(self, *args)

        monkeypatch.setattr(AdamW, name, spied)

    for name in hooks():
        spy_on(name, getattr(AdamW, name))
    options = {"use_ema": True, "gradient_accumulation_steps": 2}
    train(AdamW(WarmupLinearDecay(0.1, 10), **options), epochs=1)
    expected = set(hooks())
    if keras.backend.backend() == "jax":  # where Keras adds up in its own step
        expected.remove("_backend_increment_gradient_accumulators")
    assert called == expected and len(hooks()) == 6


def test_a_method_that_keras_does_not_have_is_refused(monkeypatch):
    monkeypatch.setattr(AdamW, "_renamed", lambda self: None, raising=False)
    with pytest.raises(TypeError, match=r"Keras 3\..* has no Optimizer\._renamed"):
        AdamW()


def test_config_round_trip():
    optimizer = AdamW(
        WarmupLinearDecay(0.1, 10, 2),
        weight_decay=0.3,
        bias_correction=False,
        rate_multipliers={"layer_0": 0.1},
        global_clipnorm=2.0,
    )
    copy = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert isinstance(copy, AdamW)
    assert copy.get_config() == optimizer.get_config()


def test_schedule_is_decay_times_warmup():
    schedule = WarmupLinearDecay(2.0, total_steps=1000, warmup_steps=100)
    for step in (0, 1, 50, 100, 700, 1000, 1200):
        expected = 2.0 * max(0, 1 - step / 1000) * min(1, step / 100)
        assert float(schedule(step)) == pytest.approx(expected, abs=1e-6)
    assert float(WarmupLinearDecay(1.0, 10)(0)) == 1.0
    with pytest.raises(ValueError, match="warmup_steps=10"):
        WarmupLinearDecay(1.0, total_steps=10, warmup_steps=10)
