import numpy as np
import pytest
from keras import ops
from scipy.special import log_softmax, rel_entr, softmax

from keras_corrupt.cross_view import objective
from tests.conftest import gradients_of


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def logits_of(rng, count=1):
    return [rng.normal(0, 2, (3, 5, 4)).astype("float32") for _ in range(count)]


WORDS = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0]], "float32")


def test_supervised_loss_is_the_mean_over_words_of_the_smoothed_cross_entropy(rng):
    (logits,) = logits_of(rng)
    labels = rng.integers(0, 4, (3, 5))
    targets = np.full((3, 5, 4), 0.1 / 4)
    np.put_along_axis(targets, labels[..., None], 0.9 + 0.1 / 4, axis=-1)
    each = -(targets * log_softmax(logits, axis=-1)).sum(-1)
    found = objective.supervised_loss(logits, labels, WORDS)
    np.testing.assert_allclose(found, each[WORDS > 0].mean(), rtol=1e-5)


def test_cross_view_loss_adds_up_the_divergences_of_all_modules(rng):
    primary, *auxiliary = logits_of(rng, 4)
    targets = softmax(primary, axis=-1)
    each = sum(
        rel_entr(targets, softmax(logits, axis=-1)).sum(-1) for logits in auxiliary
    )
    found = objective.cross_view_loss(targets, auxiliary, WORDS)
    np.testing.assert_allclose(found, each[WORDS > 0].mean(), rtol=1e-4)


def test_divergence_of_a_module_that_agrees_is_zero_also_where_it_is_certain(rng):
    (logits,) = logits_of(rng)
    logits[0, 0] = [200, 0, 0, 0]
    found = objective.cross_view_loss(softmax(logits, axis=-1), [logits], WORDS)
    np.testing.assert_allclose(found, 0.0, atol=1e-6)


def test_losses_without_words_are_zero(rng):
    logits = logits_of(rng)
    none = np.zeros((3, 5))
    assert float(objective.cross_view_loss(logits[0], logits, none)) == 0
    unknown = np.full((3, 5), -1)
    assert float(objective.supervised_loss(logits[0], unknown, none)) == 0


def test_no_gradient_reaches_the_targets():
    import keras

    class Pair(keras.Model):
        def __init__(self):
            super().__init__()
            self.primary = self.add_weight(shape=(1, 1, 3), initializer="normal")
            self.auxiliary = self.add_weight(shape=(1, 1, 3), initializer="normal")
            self.built = True

    pair = Pair()
    found = gradients_of(
        lambda: objective.cross_view_loss(
            ops.softmax(pair.primary), [pair.auxiliary], np.ones((1, 1))
        ),
        pair,
    )
    assert not found[id(pair.primary)].any()
    expected = softmax(np.array(pair.auxiliary)) - softmax(np.array(pair.primary))
    np.testing.assert_allclose(found[id(pair.auxiliary)], expected, atol=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_hard_divergence_is_that_of_the_smoothed_targets(rng, smoothing):
    (logits,) = logits_of(rng)
    labels = rng.integers(0, 4, (3, 5))
    targets = np.full((3, 5, 4), smoothing / 4)
    np.put_along_axis(targets, labels[..., None], 1 - 0.75 * smoothing, axis=-1)
    expected = rel_entr(targets, softmax(logits, axis=-1)).sum(-1)
    found = objective.hard_divergence(labels.astype("int32"), logits, smoothing)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
