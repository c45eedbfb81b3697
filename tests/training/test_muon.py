"""Muon against NumPy, against Keras's own, and continued."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_corrupt.training import AdamW, Checkpoints, Muon, WarmupLinearDecay
from keras_corrupt.training.muon import orthogonal
from tests.conftest import COMPILED

RNG = np.random.default_rng(0)
X = RNG.normal(size=(32, 4)).astype("float32")
Y = RNG.normal(size=(32, 3)).astype("float32")
PATHS = ("layer_0/kernel", "layer_0/bias", "layer_1/kernel", "head/kernel", "head/bias")


class Tower(keras.Model):
    """Two layers, with a wide and with a tall matrix, and a head."""

    def __init__(self):
        super().__init__(name="tower")
        rng = np.random.default_rng(1)
        self.layer_0 = keras.layers.Dense(6, name="layer_0")
        self.layer_1 = keras.layers.Dense(4, use_bias=False, name="layer_1")
        self.head = keras.layers.Dense(3, name="head")
        for layer, width in ((self.layer_0, 4), (self.layer_1, 6), (self.head, 4)):
            layer.build((None, width))
            for variable in layer.trainable_variables:
                variable.assign(rng.normal(size=variable.shape))
        self.built = True

    def call(self, x):
        return self.head(self.layer_1(ops.tanh(self.layer_0(x))))


def train(optimizer, steps, model=None, first=0):
    model = model or Tower()
    if not model.compiled:
        model.compile(optimizer, loss="mse", jit_compile=COMPILED)
        optimizer.build(model.trainable_variables)
    rows = slice(8 * first, 8 * (first + steps))
    model.fit(X[rows], Y[rows], batch_size=8, shuffle=False, verbose=0)
    return model


def arrays(model):
    return [np.array(variable) for variable in model.trainable_variables]


def orthogonal_in_numpy(x):
    """By the singular values: the iteration is a polynomial of each of them."""
    left, values, right = np.linalg.svd(x, full_matrices=False)
    values = values / np.linalg.norm(values)
    for _ in range(5):
        values = 3.4445 * values - 4.7750 * values**3 + 2.0315 * values**5
    return left * values @ right


def test_orthogonal_equals_a_polynomial_of_singular_values():
    for shape in ((5, 8), (8, 5), (6, 6)):
        x = RNG.normal(size=(3, *shape)).astype("float32")
        made = np.array(orthogonal(x))
        for one, matrix in zip(made, x, strict=True):
            expected = orthogonal_in_numpy(matrix.astype("float64"))
            np.testing.assert_allclose(one, expected, atol=1e-4)
        values = np.linalg.svd(made, compute_uv=False)
        assert 0.5 < values.min() and values.max() < 1.3


def test_updates_equal_numpy():
    settings = {"weight_decay": 0.1, "epsilon": 1e-6, "bias_correction": False}
    optimizer = Muon(0.02, rate_multipliers={"layer_1/": 0.5}, **settings)
    model = Tower()
    optimizer.build(model.trainable_variables)
    assert [v is None for v in optimizer._velocities] == [
        True,
        False,
        True,
        False,
        False,
    ]
    values = [a.astype("float64") for a in arrays(model)]
    first = [np.zeros(v.shape) for v in values]
    second = [np.zeros(v.shape) for v in values]
    for _ in range(3):
        gradients = [RNG.normal(size=v.shape).astype("float32") for v in values]
        optimizer.apply([ops.convert_to_tensor(g) for g in gradients])
        for i, (path, g) in enumerate(zip(PATHS, gradients, strict=True)):
            rate = 0.02 * (0.5 if "layer_1" in path else 1)
            if path.startswith("layer") and path.endswith("kernel"):
                first[i] = 0.95 * first[i] + g
                update = orthogonal_in_numpy(g + 0.95 * first[i])
                update = update * 0.2 * np.sqrt(6)
            else:
                first[i] = 0.9 * first[i] + 0.1 * g
                second[i] = 0.999 * second[i] + 0.001 * g**2
                update = first[i] / (np.sqrt(second[i]) + 1e-6)
            decay = 0.1 if path.endswith("kernel") else 0
            values[i] = values[i] - rate * (decay * values[i] + update)
    for made, expected in zip(arrays(model), values, strict=True):
        np.testing.assert_allclose(made, expected, rtol=1e-4, atol=2e-5)


def test_equals_keras_without_the_differences():
    ours = train(Muon(0.01, weight_decay=0.02, no_decay="nothing"), steps=4)
    theirs = keras.optimizers.Muon(
        0.01,
        weight_decay=0.02,
        adam_weight_decay=0.02,
        epsilon=1e-6,
        exclude_layers=["head"],
    )
    for a, b in zip(arrays(ours), arrays(train(theirs, steps=4)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_without_matrices_it_is_adamw():
    muon = train(Muon(0.01, matrices="nothing"), steps=3)
    adam = train(AdamW(0.01), steps=3)
    for a, b in zip(arrays(muon), arrays(adam), strict=True):
        np.testing.assert_array_equal(a, b)
    config = Muon(0.01, matrices="nothing", momentum=0.9, beta_2=0.98).get_config()
    again = Muon.from_config(config)
    assert (again.matrices, again.momentum, again.beta_2) == ("nothing", 0.9, 0.98)


@pytest.mark.parametrize("settings", [{}, {"global_clipnorm": 0.5}])
def test_it_goes_on_exactly_from_a_checkpoint(settings, tmp_path):
    def optimizer():
        return Muon(WarmupLinearDecay(0.02, 4, 1), bias_correction=False, **settings)

    whole = train(optimizer(), steps=4)
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(train(optimizer(), steps=2), 2)
    model, other = Tower(), optimizer()
    model.compile(other, loss="mse", jit_compile=COMPILED)
    other.build(model.trainable_variables)
    assert checkpoints.restore(model) == 2
    train(other, 2, model, first=2)
    for a, b in zip(arrays(whole), arrays(model), strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(whole.optimizer.variables, other.variables, strict=True):
        np.testing.assert_array_equal(np.array(a), np.array(b))
