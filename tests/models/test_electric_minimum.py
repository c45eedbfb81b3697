"""Where Electric's loss is least, of texts of four tokens that can all be enumerated.

With a poor q the energies that algorithm 2 learns are not -log p. That is neither the
variance of samples nor a fault of the code: it is the algorithm's assumption that other
tokens' samples make no difference (Clark's thesis, 5.1.4), and algorithm 1, which
samples one token at a time, has no such error.
"""

import itertools

import keras
import numpy as np
import pytest

from keras_corrupt.corruption import choose_positions, replace_tokens
from keras_corrupt.objectives import noise_contrastive as objective

LENGTH, WORDS = 4, 3
TEXTS = np.array([*itertools.product(range(WORDS), repeat=LENGTH)])
PLACES = WORDS ** np.arange(LENGTH)[::-1]
#: [positions, texts, words]: the number of each text with another word at a position.
NEIGHBOURS = np.stack(
    [
        np.arange(len(TEXTS))[:, None] + (np.arange(WORDS) - TEXTS[:, [t]]) * PLACES[t]
        for t in range(LENGTH)
    ]
)


@pytest.fixture(scope="module")
def p():
    """Probabilities of all texts: each word hangs on the one before it."""
    follows = np.array([[0.8, 0.1, 0.1], [0.1, 0.2, 0.7], [0.6, 0.3, 0.1]])
    chain = [follows[TEXTS[:, t], TEXTS[:, t + 1]] for t in range(LENGTH - 1)]
    return np.array([0.5, 0.3, 0.2])[TEXTS[:, 0]] * np.prod(chain, axis=0)


def given_the_others(p):
    """p(x_t | the others), `[positions, texts]`."""
    return p / p[NEIGHBOURS].sum(axis=-1)


def proposals(p):
    """q of each token of each text, `[positions, texts]`: the best, and poor ones."""
    words = np.array([(p * (TEXTS == v).mean(1)).sum() for v in range(WORDS)])
    return {
        "p": given_the_others(p),
        "frequency": words[TEXTS].T,
        "uniform": np.full((LENGTH, len(TEXTS)), 1 / WORDS),
    }


def noised(p, q):
    """How often each text is there after token t was sampled, `[positions, texts]`."""
    return p[NEIGHBOURS].sum(axis=-1) * q


def least(noise, data, q, k, n):
    """Minimises the expected loss over an energy for each token of each text.

    By Newton's method in float64.

    Args:
        noise: How often each is a sample, `[positions, texts]`.
        data: How often it is not.
        q: Its probability as a sample.
        k: Samples, for the odds.
        n: Tokens, for the odds.
    """
    rows = np.full(LENGTH, k), np.full(LENGTH, n)
    offsets = objective.noise_logits(np.zeros_like(q), np.log(q), *rows)
    offsets, energies = np.array(offsets, "float64"), np.zeros_like(q)
    for _ in range(60):
        d = 1 / (1 + np.exp(-energies - offsets))
        step = ((noise + data) * d - noise) / ((noise + data) * d * (1 - d))
        energies -= np.clip(step, -1, 1)
    return energies


def of_algorithm_2(p, q):
    """One of four tokens is a sample; the others are judged beside it."""
    each = noised(p, q)
    return least(each, each.sum(axis=0) - each, q, 1, LENGTH)


@pytest.mark.parametrize("name", ["p", "frequency", "uniform"])
def test_one_sample_at_a_time_gives_log_p_whatever_q_is(p, name):
    """Algorithm 1: a sample for each text, whose four tokens are judged without it."""
    q = proposals(p)[name]
    # Odds of k / n, which `noise_logits` has of n + k tokens.
    energies = least(noised(p, q) / LENGTH, np.tile(p, (LENGTH, 1)), q, 1, LENGTH + 1)
    np.testing.assert_allclose(-energies, np.log(given_the_others(p)), atol=1e-3)


def test_samples_beside_others_give_log_p_if_q_is_p(p):
    found = of_algorithm_2(p, given_the_others(p))
    np.testing.assert_allclose(-found, np.log(given_the_others(p)), atol=1e-3)


@pytest.mark.parametrize("name, error", [("frequency", 0.4), ("uniform", 0.6)])
def test_samples_beside_others_give_something_else_if_q_is_poor(p, name, error):
    """Namely the logarithm of a quotient of two frequencies: of the text where token t
    is no sample, and of the other tokens where it is one.
    """
    q = proposals(p)[name]
    found = of_algorithm_2(p, q)
    others = (noised(p, q).sum(axis=0) - noised(p, q)) / (LENGTH - 1)
    expected = np.log(others / p[NEIGHBOURS].sum(axis=-1))
    np.testing.assert_allclose(-found, expected, atol=1e-3)
    off = np.abs(-found - np.log(given_the_others(p)))
    assert (p * off).sum(axis=1).mean() > error
    # In the likeliest surroundings p^ adds up to less than 1.
    z = np.exp(-found)[1][NEIGHBOURS[1]].sum(axis=-1)
    assert z[p.argmax()] < 0.9


def test_what_is_drawn_differs_from_the_minimum_by_chance_alone(p):
    """The model's own corruption and labels, of 60,000 texts and a poor q."""
    rng = np.random.default_rng(0)
    q = proposals(p)["uniform"]
    ids = TEXTS[rng.choice(len(TEXTS), 60_000, p=p / p.sum())].astype("int32")
    inputs = {"token_ids": ids, "padding_mask": np.ones_like(ids)}
    masking = choose_positions(inputs, 0.25, (), keras.random.SeedGenerator(0))
    samples = rng.integers(0, WORDS, masking.positions.shape).astype("int32")
    corrupted = np.array(replace_tokens(ids, masking, samples))
    sampled = np.array(objective.sampled_labels(masking, LENGTH))
    text = corrupted @ PLACES
    noise, data = (
        np.stack([np.bincount(text, w, len(TEXTS)) for w in weights.T])
        for weights in (sampled, 1 - sampled)
    )
    seen = (noise >= 30) & (data >= 30)
    assert seen.mean() > 0.8
    found = least(np.maximum(noise, 1), np.maximum(data, 1), q, 1, LENGTH)
    errors = np.sqrt(1 / np.maximum(noise, 1) + 1 / np.maximum(data, 1))
    off = np.abs(found - of_algorithm_2(p, q)) / errors
    assert off[seen].max() < 5 and np.mean(off[seen] ** 2) < 1.3
    assert np.mean((np.abs(found + np.log(given_the_others(p))) / errors)[seen]) > 5
