"""Noise in units of standard deviations."""

import numpy as np
import pytest

from keras_corrupt.encoders.noise import with_noise


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_noise_is_in_standard_deviations_of_each_dimension(scale):
    rng = np.random.default_rng(0)
    x = scale * rng.normal(3, [1, 2, 5], (2, 4, 3)).astype("float32")
    noise = rng.normal(size=x.shape).astype("float32")
    mask = np.array([[1, 1, 1, 1], [1, 1, 0, 0]])
    x[mask == 0] = 1e6  # padding counts for nothing
    expected = x + noise * x[mask == 1].std(axis=0)
    found = np.array(with_noise(x, noise, mask))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
