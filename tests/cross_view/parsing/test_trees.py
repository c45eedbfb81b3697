import itertools
import sys

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("ufal.chu_liu_edmonds")

from keras_corrupt.cross_view.parsing.trees import best_heads
from keras_corrupt.cross_view.tasks.dependencies import word_in_cycle


def is_tree(heads):
    return heads.count(0) == 1 and word_in_cycle(heads) is None


def scores_of(words, seed, ties=False, scale=1.0):
    rng = np.random.default_rng(seed)
    shape = words, words + 1
    return rng.integers(0, 2, shape) * 1.0 if ties else rng.normal(0, scale, shape)


@settings(max_examples=300, deadline=None)
@given(
    st.integers(1, 30),
    st.integers(0, 2**32),
    st.booleans(),
    st.sampled_from([1e-30, 1e-3, 1.0, 1e4]),
)
@example(100, 0, False, 1.0)
def test_it_is_a_tree_with_one_root(words, seed, ties, scale):
    heads = best_heads(scores_of(words, seed, ties, scale))
    assert len(heads) == words and is_tree(heads)
    assert all(isinstance(head, int) and 0 <= head <= words for head in heads)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 5), st.integers(0, 2**32), st.booleans())
def test_no_other_tree_is_better(words, seed, ties):
    scores = scores_of(words, seed, ties)

    def total(heads):
        return scores[np.arange(words), heads].sum()

    every = itertools.product(range(words + 1), repeat=words)
    best = max(total(heads) for heads in every if is_tree(heads))
    assert total(best_heads(scores)) == pytest.approx(best)


def test_a_word_is_not_its_own_head_and_the_root_has_one_alone():
    assert best_heads(np.array([[1.0, 9.0]])) == [0]
    scores = np.array([[9.0, 0.0, 1.0], [9.0, 2.0, 0.0]])  # the root is best for both
    assert best_heads(scores) == [0, 1]
    assert best_heads(np.zeros((0, 1))) == []


def test_errors(monkeypatch):
    with pytest.raises(ValueError, match="NaN or infinity"):
        best_heads(np.array([[np.nan, 1.0]]))
    monkeypatch.setitem(sys.modules, "ufal.chu_liu_edmonds", None)
    with pytest.raises(ImportError, match=r"pip install -e '.\[parsing\]'"):
        best_heads(np.zeros((1, 2)))
