"""Whole words and spans: which tokens, how many, how often."""

import keras
import numpy as np
import pytest

from keras_corrupt.corruption import choose_spans, choose_words, num_masked

RATE, UNMASKABLE = 0.3, (0, 2, 3)
#: Ids 5 to 29 begin words, 30 to 49 go on with one.
WORD_STARTS = np.arange(50) < 30


def make_texts(batch=64, length=24, seed=0):
    """Padded texts: [CLS] words [SEP] words [SEP]."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(5, 50, (batch, length)).astype("int32")
    lengths = rng.integers(6, length + 1, batch)
    mask = (np.arange(length) < lengths[:, None]).astype("int32")
    ids[:, 0] = 2
    ids[np.arange(batch), lengths // 2] = 3
    ids[np.arange(batch), lengths - 1] = 3
    return {"token_ids": ids * mask, "segment_ids": 0 * ids, "padding_mask": mask}


def words_of(ids):
    """The words of a text: lists of positions; special tokens are in none."""
    words, last = [], None
    for position, token in enumerate(ids):
        if token in UNMASKABLE:
            last = None
        elif last is None or WORD_STARTS[token]:
            words.append([position])
            last = words[-1]
        else:
            last.append(position)
    return words


def chosen_positions(masking):
    positions, weights = (np.array(x) for x in masking)
    return [set(p[w > 0].tolist()) for p, w in zip(positions, weights, strict=True)]


def draw(inputs, seed, **spans):
    seed = keras.random.SeedGenerator(seed)
    choose = choose_spans if spans else choose_words
    return choose(inputs, RATE, UNMASKABLE, seed, WORD_STARTS, **spans)


@pytest.mark.parametrize("spans", [{}, {"mean_length": 2.0}])
def test_words_are_chosen_whole_and_within_the_number(spans):
    inputs = make_texts()
    masking = draw(inputs, 1, **spans)
    assert masking.positions.shape == (64, num_masked(RATE, 24))
    some = 0
    for row, chosen in enumerate(chosen_positions(masking)):
        ids = inputs["token_ids"][row]
        length = inputs["padding_mask"][row].sum()
        assert len(chosen) <= np.ceil(RATE * length - 1e-6)
        assert len(chosen) == np.array(masking.weights)[row].sum()  # no position twice
        some += len(chosen)
        words = words_of(ids)
        for word in words:
            assert chosen.isdisjoint(word) or chosen.issuperset(word)
        assert chosen <= {position for word in words for position in word}
    # Nearly as many as allowed.
    assert some > 0.75 * RATE * inputs["padding_mask"].sum()


def test_every_word_of_a_text_is_as_likely():
    """Words of equal lengths; long ones fit less often."""
    text = np.array([[2, *([5, 40] * 8), 3]], "int32")
    inputs = {"token_ids": np.repeat(text, 2000, axis=0)}
    inputs["padding_mask"] = np.ones_like(inputs["token_ids"])
    counts = np.zeros(18)
    for chosen in chosen_positions(draw(inputs, 2)):
        assert len(chosen) == 6  # of ceil(0.3 * 18), all used
        counts[list(chosen)] += 1
    expected = 2000 * 3 / 8
    np.testing.assert_allclose(counts[1:-1], expected, atol=5 * np.sqrt(expected))


def test_a_word_longer_than_the_number_is_never_chosen():
    text = np.array([[2, 5, *[40] * 14, 6, 3]], "int32")
    inputs = {"token_ids": np.repeat(text, 50, axis=0)}
    inputs["padding_mask"] = np.ones_like(inputs["token_ids"])
    assert set().union(*chosen_positions(draw(inputs, 3))) == {16}


def runs(positions):
    """The runs of neighbouring positions."""
    positions = sorted(positions)
    breaks = np.flatnonzero(np.diff(positions) > 1) + 1
    return np.split(positions, breaks) if positions else []


def test_spans_have_the_lengths_that_were_asked_for():
    text = np.array([[2, *[5] * 126, 3]], "int32")  # a token is a word
    inputs = {"token_ids": np.repeat(text, 200, axis=0)}
    inputs["padding_mask"] = np.ones_like(inputs["token_ids"])
    for chosen in chosen_positions(draw(inputs, 4, mean_length=4, fixed=True)):
        for run in runs(chosen):
            cut = run[0] == 1 or run[-1] == 126  # by an end of the text
            assert cut or len(run) % 4 == 0  # neighbours make 8
    few = keras.random.SeedGenerator(5)
    masking = choose_spans(inputs, 0.03, UNMASKABLE, few, WORD_STARTS, 1.5)
    lengths = [len(run) for chosen in chosen_positions(masking) for run in runs(chosen)]
    # Geometric with mean 1.5, cut off above 4 and by the room that is left.
    assert 1.2 < np.mean(lengths) < 1.7
    assert lengths.count(1) > 1.5 * lengths.count(2) > 1.5 * lengths.count(3)


def test_spans_cover_every_position_alike():
    text = np.array([[2, *[5] * 30, 3]], "int32")
    inputs = {"token_ids": np.repeat(text, 3000, axis=0)}
    inputs["padding_mask"] = np.ones_like(inputs["token_ids"])
    for fixed in (False, True):
        counts = np.zeros(32)
        masking = draw(inputs, 6, mean_length=3, fixed=fixed)
        for chosen in chosen_positions(masking):
            counts[list(chosen)] += 1
        assert counts[0] == counts[-1] == 0
        rates = counts[3:-3] / 3000  # at the ends spans are cut
        assert np.ptp(rates) < 0.08, rates
