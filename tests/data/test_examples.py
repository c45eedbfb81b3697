import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_corrupt.data.examples import build_examples

CLS, SEP = -1, -2


def build(lengths, max_length, seed=0):
    numbers = iter(range(10**9))
    sentences = [[next(numbers) for _ in range(length)] for length in lengths]
    return list(
        build_examples(
            sentences,
            max_length=max_length,
            classify_id=CLS,
            separate_id=SEP,
            rng=random.Random(seed),
        )
    )


@given(
    lengths=st.lists(st.integers(0, 80), max_size=30),
    max_length=st.integers(5, 64),
    seed=st.integers(0, 1000),
)
def test_every_token_stands_once_and_in_order(lengths, max_length, seed):
    examples = build(lengths, max_length, seed)
    text = [token for ids, _ in examples for token in ids if token >= 0]
    assert text == list(range(sum(lengths)))
    for token_ids, segment_ids in examples:
        assert 3 <= len(token_ids) <= max_length
        ends = [place for place, token in enumerate(token_ids) if token == SEP]
        assert token_ids[0] == CLS and token_ids.count(CLS) == 1
        assert len(ends) in (1, 2) and ends[-1] == len(token_ids) - 1
        assert segment_ids == [int(place > ends[0]) for place in range(len(token_ids))]


def test_a_long_sentence_takes_linear_time():
    # Where the rest was copied for each example, this took minutes.
    start = time.monotonic()
    examples = build([2_000_000], 64)
    assert time.monotonic() - start < 30
    assert sum(len(ids) for ids, _ in examples) > 2_000_000


@given(st.integers(0, 1000))
def test_same_seed_gives_the_same_examples(seed):
    assert build([7] * 50, 32, seed) == build([7] * 50, 32, seed)


def test_frequencies_of_the_random_choices():
    # Sentences of 10 tokens, examples of 128: without a choice, a full example has
    # segments, and the first holds 60 tokens (one sentence below (128 - 3) // 2 = 62)
    # or, when the coin takes the crossing sentence, 70.
    examples = build([10] * 300_000, 128)
    # The remainder carried over shifts sentence borders; look at the sizes only.
    full = [ids for ids, _ in examples if len(ids) >= 127]
    single = sum(ids.count(SEP) == 1 for ids in full) / len(full)
    assert single == pytest.approx(0.10, abs=0.01)
    firsts = [ids.index(SEP) - 1 for ids in full if ids.count(SEP) == 2]
    crossed = sum(first >= 62 for first in firsts) / len(firsts)
    assert crossed == pytest.approx(0.5, abs=0.02)
    # (118 - 3) // 2 = 57 is half of the shortest target that fills an example
    assert 47 <= min(firsts) and max(firsts) <= 71
    # 5% have a uniform target in 5..128; one in 13 of those is above 117 and comes
    # out full.
    short = sum(len(ids) < 118 for ids, _ in examples) / len(examples)
    assert short == pytest.approx(0.05 * (117 - 10 - 4 + 10) / 124, abs=0.006)


def test_long_line_continues_in_the_next_example():
    examples = build([100], 32)
    assert [len(ids) for ids, _ in examples[:3]] == [32, 32, 32]
    assert sum(len(ids) - 2 for ids, _ in examples) == 100


def test_document_end_flushes():
    assert build([3], 32)[0].token_ids == [CLS, 0, 1, 2, SEP]
    assert build([], 32) == []


def test_max_length_has_a_lower_bound():
    with pytest.raises(ValueError, match="max_length=4"):
        build([3], 4)
