import numpy as np
import pytest

from tests.data.conftest import corpus, prepared, settings  # noqa: F401


def check_that_places_are_independent(stays, rate):
    """Checks what dropout leaves by its share, in all and along each axis.

    Args:
        stays: Booleans.
        rate: The fraction that is dropped.
    """
    stays = stays.astype("float64")
    spread = (rate * (1 - rate)) ** 0.5
    assert stays.mean() == pytest.approx(1 - rate, abs=5 * spread / stays.size**0.5)
    for axis, size in enumerate(stays.shape):
        others = tuple(a for a in range(stays.ndim) if a != axis)
        error = spread / (stays.size / size) ** 0.5
        np.testing.assert_allclose(stays.mean(axis=others), 1 - rate, atol=5 * error)
        left, right = (np.take(stays, np.arange(size - 1) + i, axis) for i in (0, 1))
        correlation = np.corrcoef(left.ravel(), right.ravel())[0, 1]
        assert abs(correlation) < 5 / left.size**0.5
