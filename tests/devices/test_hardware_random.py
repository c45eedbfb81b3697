import keras
import numpy as np
import pytest

from keras_corrupt.corruption import sample_tokens
from keras_corrupt.devices import hardware_random
from keras_corrupt.devices.replicas import Dropout, SeedGenerator
from keras_corrupt.models import Electra

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "jax", reason="only JAX uses it"
)


@pytest.fixture(autouse=True)
def hardware(monkeypatch):
    assert not hardware_random.is_used()  # as tests run on CPUs
    monkeypatch.setattr(hardware_random, "is_used", lambda: True)


def test_draws_differ_and_come_again_from_the_same_state():
    seeds = SeedGenerator(7)
    state = np.array(seeds.state)
    first, second = (
        np.array(keras.random.uniform((1000,), seed=seeds)) for _ in range(2)
    )
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.15
    np.testing.assert_allclose([first.mean(), first.var()], [1 / 2, 1 / 12], atol=0.05)
    seeds.state.assign(state)
    np.testing.assert_array_equal(keras.random.uniform((1000,), seed=seeds), first)


def test_dropout_and_samples_have_their_rates():
    dropout = Dropout(0.3)
    found = np.array(dropout(np.ones((100, 200), "float32"), training=True))
    assert 0.68 < (found > 0).mean() < 0.72
    np.testing.assert_allclose(found[found > 0], 1 / 0.7, rtol=1e-6)
    logits = np.log(np.tile([[0.5, 0.3, 0.2]], (20000, 1))).astype("float32")
    drawn = np.array(sample_tokens(logits, SeedGenerator(1)))
    np.testing.assert_allclose(np.bincount(drawn) / 20000, [0.5, 0.3, 0.2], atol=0.015)


def test_dropout_is_the_same_as_without_it(monkeypatch):
    found = []
    for used in (True, False):
        monkeypatch.setattr(hardware_random, "is_used", lambda used=used: used)
        dropout = Dropout(0.3)
        dropout.seed_generator = SeedGenerator(7)
        found.append(np.array(dropout(np.ones((10, 20), "float32"), training=True)))
    np.testing.assert_array_equal(*found)


def test_a_model_trains_with_it(sizes, inputs):
    model = Electra(**sizes)
    model.compile(keras.optimizers.Adam(1e-3))
    before = np.array(model.seed_generator.state)
    history = model.fit(inputs, batch_size=3, epochs=2, verbose=0).history
    assert np.isfinite(history["loss"]).all()
    assert (np.array(model.seed_generator.state) != before).any()
