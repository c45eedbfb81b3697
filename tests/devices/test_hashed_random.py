import keras
import numpy as np
import pytest
from keras import ops

from keras_corrupt.devices.hashed_random import dropped, uniform
from keras_corrupt.devices.replicas import Dropout
from tests.devices.conftest import check_that_places_are_independent

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "jax", reason="only JAX uses it"
)

SEED = np.array([7, 9], "uint32")


def kept(rate, seed=SEED, shape=(16, 64, 128)):
    """Returns which numbers stay, booleans."""
    found = dropped(ops.ones(shape), rate, ops.convert_to_tensor(seed))
    return np.array(found > 0)


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_the_rate_is_dropped_and_nothing_depends_on_its_neighbours(rate):
    check_that_places_are_independent(kept(rate), rate)


def test_each_seed_drops_others():
    # Draws of one generator, and of generators with neighbouring seeds.
    seeds = [SEED + np.array(step, "uint32") for step in ((0, 0), (1, 0), (0, 1))]
    found = [kept(0.5, seed).ravel() for seed in seeds]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert (found[one] == found[other]).mean() == pytest.approx(0.5, abs=0.01)


def test_what_stays_is_larger_and_has_its_gradient():
    import jax

    values = np.random.default_rng(0).normal(size=(64, 32)).astype("float32")
    seed = ops.convert_to_tensor(SEED)

    def total(x):
        found = dropped(x, 0.25, seed)
        return ops.sum(found), found

    gradient, found = jax.grad(total, has_aux=True)(values)
    stays = np.array(found) != 0
    assert 0.7 < stays.mean() < 0.8
    np.testing.assert_allclose(found, stays * values / 0.75, rtol=1e-6)
    np.testing.assert_allclose(gradient, stays / 0.75, rtol=1e-6)


def test_a_layer_draws_anew_and_repeats_a_seed():
    layer, ones = Dropout(0.5, dtype="mixed_bfloat16"), ops.ones((8, 64), "bfloat16")
    seed = layer.draw(training=True)
    first, again, other = (
        np.array(ops.cast(layer(ones, training=True, seed=s), "float32"))
        for s in (seed, seed, None)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert set(first.ravel()) == {0.0, 2.0}


def test_uniform_numbers_are_flat_and_new_in_each_draw():
    generator = keras.random.SeedGenerator(3)
    first, second = (np.array(uniform((400, 250), generator)) for _ in range(2))
    assert first.dtype == np.float32 and 0 <= first.min() and first.max() < 1
    for drawn in (first, second, (first + second) % 1):
        counts = np.histogram(drawn, 100, (0, 1))[0]
        chi2 = ((counts - 1000) ** 2 / 1000).sum()
        assert chi2 < 99 + 5 * np.sqrt(198)
