"""Noise in units of standard deviations."""

import types

import keras
import numpy as np
import pytest
from keras import ops

from keras_corrupt.cross_view.noise import with_noise
from tests.conftest import gradients_of


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_noise_is_in_standard_deviations_of_each_dimension(scale):
    rng = np.random.default_rng(0)
    x = scale * rng.normal(3, [1, 2, 5], (2, 4, 3)).astype("float32")
    noise = rng.normal(size=x.shape).astype("float32")
    mask = np.array([[1, 1, 1, 1], [1, 1, 0, 0]])
    x[mask == 0] = 1e6  # padding counts for nothing
    expected = x + noise * x[mask == 1].std(axis=0)
    variable = keras.Variable(x)
    variables = types.SimpleNamespace(
        trainable_variables=[variable], non_trainable_variables=[]
    )

    def total():
        return ops.sum(with_noise(ops.convert_to_tensor(variable), noise, mask))

    found = np.array(with_noise(x, noise, mask))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    # The noise is a constant: no gradient flows through its size.
    gradient = gradients_of(total, variables)[id(variable)]
    np.testing.assert_array_equal(gradient, np.ones(x.shape))
