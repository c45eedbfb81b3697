import numpy as np

from keras_corrupt.encoders.token_spread import token_spread


def test_is_one_minus_the_mean_cosine_of_two_tokens():
    states = np.random.default_rng(0).normal(size=(3, 7, 5)).astype("float32") + 0.5
    lengths = [7, 4, 1]
    mask = np.arange(7) < np.array(lengths)[:, None]
    expected = []
    for text, length in zip(states, lengths, strict=True):
        units = text[:length] / np.linalg.norm(text[:length], axis=1, keepdims=True)
        expected.append(1 - (units @ units.T).mean())
    found = np.array(token_spread(states, mask.astype("int32")))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_is_nothing_where_all_states_have_one_direction():
    lengths = np.array([1.0, 5.0, 0.1, 900.0])
    states = lengths[None, :, None] * np.array([0.6, -0.8])
    np.testing.assert_allclose(token_spread(states, np.ones((1, 4))), 0, atol=1e-6)
    opposite = states * np.array([1, -1, 1, -1])[None, :, None]
    np.testing.assert_allclose(token_spread(opposite, np.ones((1, 4))), 1, atol=1e-6)
