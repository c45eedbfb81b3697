"""Against loops over single texts, without padding, in NumPy."""

import keras
import numpy as np
import pytest

from keras_corrupt.models import Electra, ElectraTT, Electric, MaskedLM, TwoTower
from keras_corrupt.models.windows import cuts
from keras_corrupt.scoring import (
    WordScore,
    conditional_score,
    score_sentences,
    token_scores,
    word_scores,
)
from tests.conftest import SIZES

PAIR = "a dog sat", "ran slowly ."
TEXTS = ["the cats sat on the mat .", "a dog ran", "", PAIR, "the mat ran"]
ENCODER = {**SIZES["discriminator"], "vocabulary_size": 60, "initializer_range": 0.3}


def make(system, tokenizer, **options):
    generator = [] if system in (MaskedLM, TwoTower) else [SIZES["generator"]]
    return system(ENCODER, *generator, tokenizer=tokenizer, **options)


def log_softmax(logits):
    logits = np.array(logits, "float64")
    logits -= logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def log_q(network, inputs):
    """Exact, from the logits of a two-tower network at all positions."""
    ids = inputs["token_ids"]
    positions = np.arange(ids.shape[1], dtype="int32")[None]
    logs = log_softmax(network.head(network(inputs), positions))
    return np.take_along_axis(logs[0], ids[0][:, None], axis=-1)[:, 0]


def of_electric(model, inputs):
    weights = np.array(model.discriminator.head.energy)[:, 0]
    return -np.array(model.encoder(inputs))[0] @ weights


def of_electra_tt(model, inputs):
    """With k samples in n tokens, special ones aside for n, but not for k."""
    logit = np.array(model.discriminator(inputs), "float64")[0]
    d = 1 - 1 / (1 + np.exp(-logit))  # of data
    r, q = d / (1 - d), np.exp(log_q(model.generator, inputs))
    k = np.ceil(0.15 * inputs["padding_mask"].sum() - 1e-9)
    n = (~np.isin(inputs["token_ids"], [0, 2, 3])).sum()
    return np.log(r * k * q / (n - k + k * q + r * k * q))


def of_masked_lm(model, inputs, rest_of_word=False):
    logs = np.zeros(inputs["token_ids"].shape[1])
    pieces = model.tokenizer.tokens(inputs["token_ids"][0])
    for position, token in enumerate(inputs["token_ids"][0]):
        masked = inputs["token_ids"].copy()
        masked[0, position] = model.mask_id
        following = min(position + 1, len(pieces) - 1)
        while rest_of_word and pieces[following].startswith("##"):
            masked[0, following] = model.mask_id
            following += 1
        logits = model.network(
            {**inputs, "token_ids": masked}, np.array([[position]], "int32")
        )
        logs[position] = log_softmax(logits)[0, 0, token]
    return logs


@pytest.mark.parametrize(
    "system, logs_of",
    [
        (Electric, of_electric),
        (TwoTower, lambda model, inputs: log_q(model.network, inputs)),
        (ElectraTT, of_electra_tt),
        (MaskedLM, of_masked_lm),
    ],
)
def test_sums_are_those_of_single_texts(system, logs_of, tokenizer):
    model = make(system, tokenizer)
    expected = []
    for text in filter(None, TEXTS):
        inputs = tokenizer.pack([text], 24)
        counted = ~np.isin(inputs["token_ids"][0], [0, 2, 3])
        expected.append(logs_of(model, inputs)[counted].sum())
    found = score_sentences(model, TEXTS, batch_size=2)
    expected.insert(2, 0.0)  # nothing to add up
    assert len(set(np.round(expected, 3))) == len(TEXTS)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    together = score_sentences(model, TEXTS)
    np.testing.assert_allclose(found, together, rtol=1e-4, atol=1e-4)


def test_tokens_of_strings_and_of_ids_in_nats_and_bits(tokenizer):
    model = make(Electric, tokenizer)
    texts = ["the cats sat", "a dog ran slowly ."]
    bits = token_scores(model, texts, base=2)
    ids = [tokenizer.encode(text) for text in texts]
    for text, (tokens, scores), of_ids in zip(
        texts, bits, token_scores(model, ids), strict=True
    ):
        inputs = tokenizer.pack([text], 24)
        assert tokens == tokenizer.tokens(inputs["token_ids"][0, 1:-1]) == of_ids[0]
        expected = of_electric(model, inputs)[1:-1]
        np.testing.assert_allclose(of_ids.scores, expected, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(scores, expected / np.log(2), rtol=1e-4, atol=1e-4)
    means = score_sentences(model, [*texts, ""], reduction="mean")
    expected = [scores.mean() for _, scores in token_scores(model, texts)] + [0.0]
    np.testing.assert_allclose(means, expected, rtol=1e-5)


@pytest.mark.parametrize("mask", ["token", "rest_of_word"])
def test_n_passes_are_a_loop_over_the_tokens(tokenizer, mask):
    """Alone, or with the rest of its word: `slowly` and `cats` are two pieces each."""
    model = make(MaskedLM, tokenizer)
    texts = ["the cats sat slowly", "cats", "a dog"]
    found = token_scores(model, texts, mask=mask, batch_size=2)
    for text, (_, scores) in zip(texts, found, strict=True):
        inputs = tokenizer.pack([text], 24)
        expected = of_masked_lm(model, inputs, rest_of_word=mask == "rest_of_word")
        np.testing.assert_allclose(scores, expected[1:-1], rtol=1e-4, atol=1e-4)
    alone = token_scores(model, texts)[0]
    pieces = [token in ("cat", "slow") for token in alone.tokens]
    differ = np.abs(found[0].scores - alone.scores) > 1e-3
    assert differ.tolist() == (pieces if mask == "rest_of_word" else [False] * 6)


def test_words_have_their_pieces_sums_and_places(tokenizer):
    model = make(TwoTower, tokenizer)
    text = "The  CATS sat, slowly"
    (tokens,) = token_scores(model, [text])
    assert tokens.tokens == ["the", "cat", "##s", "sat", ",", "slow", "##ly"]
    s = tokens.scores
    words, nothing = word_scores(model, [text, ""])
    assert nothing == []
    expected = [
        ("The", 0, 3, s[0]),
        ("CATS", 5, 9, s[1] + s[2]),
        ("sat", 10, 13, s[3]),
        (",", 13, 14, s[4]),
        ("slowly", 15, 21, s[5] + s[6]),
    ]
    for word, (*place, score) in zip(words, expected, strict=True):
        assert isinstance(word, WordScore) and list(word[:3]) == place
        assert word.score == pytest.approx(score, rel=1e-5)


def test_a_text_behind_another_is_scored_alone(tokenizer):
    model = make(Electric, tokenizer)
    contexts, texts = ["the cats sat", "a dog"], ["on the mat .", "ran"]
    found = conditional_score(model, contexts, texts)
    for pair, score in zip(zip(contexts, texts, strict=True), found, strict=True):
        inputs = tokenizer.pack([pair], 24)
        second = inputs["segment_ids"][0] == 1
        second &= inputs["token_ids"][0] != tokenizer.separate_id
        expected = of_electric(model, inputs)[second].sum()
        assert score == pytest.approx(expected, rel=1e-4)


def test_long_texts_are_read_in_windows(tokenizer):
    """Of 22 tokens, beginning every 11; a token's is the one with more around it."""
    model = make(Electric, tokenizer)
    ids = np.random.default_rng(0).integers(5, 20, 40).tolist()
    expected = []
    for start, end, first, last in [(0, 22, 0, 16), (11, 33, 16, 25), (18, 40, 25, 40)]:
        row = np.array([[2, *ids[start:end], 3]], "int32")
        inputs = {"token_ids": row, "segment_ids": 0 * row, "padding_mask": 0 * row + 1}
        expected += of_electric(model, inputs)[
            1 + first - start : 1 + last - start
        ].tolist()
    (found,) = token_scores(model, [ids])
    np.testing.assert_allclose(found.scores, expected, rtol=1e-4, atol=1e-4)
    (alone,) = token_scores(model, [ids[:22]])
    (shorter,) = token_scores(model, [ids[:22]], max_length=12)  # begin every 5
    windows = [ids[:10], ids[5:15], ids[10:20], ids[12:22]]
    parts = [w.scores for w in token_scores(model, windows)]
    expected = [parts[0][:7], parts[1][2:7], parts[2][2:6], parts[3][4:]]
    np.testing.assert_allclose(shorter.scores, np.concatenate(expected), rtol=1e-4)
    assert abs(shorter.scores - alone.scores).max() > 1e-3


@pytest.mark.parametrize("length", range(0, 60, 7))
@pytest.mark.parametrize("size", [1, 2, 3, 10, 22])
def test_windows_keep_each_token_once_with_text_around_it(length, size):
    windows = cuts(length, size)
    kept = [i for _, _, first, last in windows for i in range(first, last)]
    assert kept == list(range(length))
    for start, end, first, last in windows:
        assert end - start == min(length, size) and start <= first <= last <= end
        assert start == 0 or first - start >= (size - 1) // 4
        assert end == length or end - last >= (size - 1) // 4


def test_errors(tokenizer):
    with pytest.raises(
        ValueError, match="Electra gives .* ElectraTT, Electric, MaskedLM, TwoTower"
    ):
        score_sentences(make(Electra, tokenizer), ["a dog"])
    electric = make(Electric, tokenizer)
    with pytest.raises(ValueError, match="`texts` must be a list; got 'a dog'"):
        score_sentences(electric, "a dog")
    with pytest.raises(ValueError, match="`batch_size` must be 1 or more; got 0"):
        score_sentences(electric, ["a dog"], batch_size=0)
    with pytest.raises(
        ValueError, match="`max_length` must be from 4 to .* 24; got 25"
    ):
        score_sentences(electric, ["a dog"], max_length=25)
    with pytest.raises(ValueError, match=r"texts\[1\], a pair, has 43 tokens"):
        score_sentences(electric, ["a dog", ("dog " * 39, "a")])
    with pytest.raises(ValueError, match=r"texts\[0\]` has the token id 99; .* 0 to 4"):
        score_sentences(electric, [[5, 99]])
    with pytest.raises(ValueError, match=r"texts\[0\]` must be a string or a pair"):
        score_sentences(electric, [("a", "dog", "ran")])
    with pytest.raises(ValueError, match="`texts` is empty"):
        score_sentences(electric, [])
    with pytest.raises(ValueError, match="`base` must be more than 1; got 0.5"):
        score_sentences(electric, ["a dog"], base=0.5)
    with pytest.raises(ValueError, match="`reduction` must be one of"):
        score_sentences(electric, ["a dog"], reduction="max")
    with pytest.raises(ValueError, match="`mask` must be one of .*got 'word'"):
        score_sentences(electric, ["a dog"], mask="word")
    with pytest.raises(ValueError, match="Electric masks nothing to score a text"):
        score_sentences(electric, ["a dog"], mask="rest_of_word")
    with pytest.raises(ValueError, match="as many; got 2 and 1"):
        conditional_score(electric, ["a", "the"], ["dog"])
    with pytest.raises(ValueError, match=r"`texts\[0\]` must be a string"):
        word_scores(electric, [PAIR])
    with pytest.raises(ValueError, match="need the model's tokenizer"):
        score_sentences(Electric(**SIZES), ["a dog"])


@pytest.mark.usefixtures("graphs")
def test_a_model_is_compiled_once_and_scores_what_it_is_then(tokenizer, tmp_path):
    model = make(MaskedLM, tokenizer)
    before = score_sentences(model, ["the cat sat"])
    predict = vars(model)["_predict_token_logs"]
    for variable in model.trainable_variables:
        variable.assign(variable + 0.3 * keras.random.normal(variable.shape))
    after = score_sentences(model, ["the cat sat"])
    assert vars(model)["_predict_token_logs"] is predict
    assert abs(after - before).max() > 1e-3
    model.save(tmp_path / "model.keras")  # and it is no part of the model
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(score_sentences(again, ["the cat sat"]), after, 1e-5)
