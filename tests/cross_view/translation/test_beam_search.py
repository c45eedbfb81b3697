import itertools

import keras
import numpy as np
import pytest
from scipy.special import log_softmax

from keras_corrupt.cross_view.translation.beam_search import beam_search

END, FIRST, CLASSES, LENGTH = 0, 4, 4, 5
# A sentence that is empty ends at once.
LIMITS = np.array([5, 3, 1, 4], "int32")


class Toy:
    """Logits that depend on the last two ids: its state is the last but one."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        shape = (len(LIMITS), CLASSES + 1, CLASSES + 1, CLASSES)
        self.logits = rng.normal(0, 2, shape).astype("float32")

    def search(self, beam_size, length_penalty=0.0):
        ops, rows = keras.ops, np.arange(len(LIMITS))[:, None]

        def step(last, states):
            before = ops.cast(states[0][..., 0], "int32")
            flat = ops.convert_to_tensor(self.logits.reshape(-1, CLASSES))
            index = (rows * (CLASSES + 1) + before) * (CLASSES + 1) + last
            return ops.take(flat, index, axis=0), [ops.cast(last, "float32")[..., None]]

        state = ops.full((len(LIMITS), beam_size, 1), FIRST, dtype="float32")
        sizes = LIMITS, LENGTH, beam_size
        return beam_search(step, [state], FIRST, END, *sizes, length_penalty)

    def score(self, row, ids, length_penalty=0.0):
        ways = log_softmax(self.logits[row].astype("float64"), axis=-1)
        read = [FIRST, FIRST, *ids]
        found = sum(ways[a, b, c] for a, b, c in zip(read, read[1:], read[2:]))  # noqa: B905
        return found / ((5 + len(ids)) / 6) ** length_penalty


def sequences(limit):
    """All that end within a limit."""
    for length in range(limit):
        for ids in itertools.product(range(1, CLASSES), repeat=length):
            yield [*ids, END]


@pytest.mark.parametrize("length_penalty", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("seed", range(4))
def test_with_room_for_all_it_finds_the_best_one(seed, length_penalty):
    toy = Toy(seed)
    found, scores, means = map(np.array, toy.search(150, length_penalty))
    assert found.shape == (len(LIMITS), LENGTH)
    for row, limit in enumerate(LIMITS):
        best = max(
            sequences(limit), key=lambda ids: toy.score(row, ids, length_penalty)
        )
        assert found[row].tolist() == best + [END] * (LENGTH - len(best))
        expected = toy.score(row, best, length_penalty)
        assert scores[row] == pytest.approx(expected, rel=1e-4)
        mean = toy.score(row, best) / len(best)
        assert means[row] == pytest.approx(mean, rel=1e-4)


def test_the_penalty_makes_translations_longer():
    def ids(length_penalty):
        found = [Toy(seed).search(150, length_penalty)[0] for seed in range(4)]
        return (np.array(found) != END).sum()

    assert ids(0.0) < ids(1.0) < ids(3.0)


@pytest.mark.parametrize("beam_size", [1, 2, 3])
def test_with_less_room_it_keeps_the_best_at_each_step(beam_size):
    toy = Toy(0)
    found, scores, _ = map(np.array, toy.search(beam_size))
    for row, limit in enumerate(LIMITS):
        kept = [[]]
        for t in range(limit):
            ways = [ids for ids in kept if ids[-1:] == [END]]
            for ids in kept:
                if ids[-1:] != [END]:
                    last = t + 1 == limit
                    ways += [[*ids, c] for c in range(1 if last else CLASSES)]
            kept = sorted(ways, key=lambda ids: -toy.score(row, ids))[:beam_size]
            if kept[0][-1] == END:
                break
        assert found[row].tolist() == kept[0] + [END] * (LENGTH - len(kept[0]))
        assert scores[row] == pytest.approx(toy.score(row, kept[0]), rel=1e-4)


@pytest.mark.usefixtures("graphs")
def test_it_is_the_same_when_compiled():
    toy = Toy(1)
    expected, *_ = toy.search(4)
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        found, *_ = tf.function(lambda: toy.search(4))()
    else:
        import jax

        found, *_ = jax.jit(lambda: toy.search(4))()
    np.testing.assert_array_equal(np.array(found), np.array(expected))
