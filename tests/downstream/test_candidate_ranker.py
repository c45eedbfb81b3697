import keras
import numpy as np
import pytest

from keras_corrupt.downstream.candidate_ranker import CandidateRanker, window
from keras_corrupt.tokenizers.wordpiece import SPECIAL_TOKENS, WordPieceTokenizer
from tests.conftest import COMPILED, SIZES
from tests.tasks.conftest import ROWS


def test_window_keeps_the_candidate():
    before, after = list(range(10)), list(range(20, 30))
    assert window(before, [99], after, 30) == (before, [99], after)
    assert window(before, [99], [], 4) == ([7, 8, 9], [99], [])
    assert window([], [99], after, 4) == ([], [99], [20, 21, 22])
    assert window(before, [97, 98, 99], after, 2) == ([], [97, 98], [])


@pytest.fixture
def ranker():
    words = "the cup plate fell on because it was light kim saw and him he .".split()
    tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, *words])
    encoder = {**SIZES["discriminator"], "max_length": 16}
    return CandidateRanker(encoder, tokenizer, fallback="1", dropout=0.0)


def words_of(model, feature):
    return model.tokenizer.tokens(feature.inputs["token_ids"].tolist())


def test_features(ranker):
    features = ranker.features(ROWS)
    assert [feature.example for feature in features] == [0, 0, 1, 1, 2, 2]
    first = features[0]
    text = "[CLS] the cup fell on the plate because the cup was light . [SEP]"
    assert words_of(ranker, first) == text.split()
    assert np.flatnonzero(first.inputs["candidate"]).tolist() == [8, 9]
    marked = [
        " ".join(np.array(words_of(ranker, f))[f.inputs["candidate"] == 1])
        for f in features
    ]
    # The rules take the verb along: nothing tells them that it is one.
    assert marked == [
        *("the cup", "the plate"),
        *("the plate", "the cup fell"),
        *("the cup", "kim"),
    ]
    # For training: of the right one's rivals, it is known that they are wrong.
    features = ranker.features(ROWS, ["1", "0", "0", "1"])
    targets = [(f.example, f.targets["right"]) for f in features]
    assert targets == [(0, 1.0), (0, 0.0), (1, 0.0), (2, 0.0)]
    with pytest.raises(ValueError, match="must be one of .* got 'yes'"):
        ranker.features(ROWS[:1], ["yes"])


def test_a_score_is_the_mean_logit_of_the_candidate(ranker):
    features = ranker.features(ROWS)
    outputs = ranker.outputs(features, batch_size=4)  # with padding
    kernel, bias = (np.array(w) for w in ranker.head.dense.get_weights())
    for feature, output in list(zip(features, outputs, strict=True))[:2]:
        inputs = {name: values[None] for name, values in feature.inputs.items()}
        inputs["padding_mask"] = np.ones_like(inputs["token_ids"])
        hidden = keras.ops.convert_to_numpy(ranker.encoder(inputs))[0]
        logits = (hidden @ kernel + bias)[:, 0]
        expected = np.mean(logits[feature.inputs["candidate"] == 1])
        assert output["score"] == pytest.approx(expected, abs=1e-5)


def test_loss_is_binary_cross_entropy(ranker):
    scores, right = np.array([2.0, -1.0, 0.5], "float32"), np.array([1.0, 1, 0])
    losses = ranker.sequence_losses(
        {"score": scores}, {"right": right.astype("float32")}
    )
    probability = 1 / (1 + np.exp(-scores))
    expected = -np.log(np.where(right == 1, probability, 1 - probability))
    np.testing.assert_allclose(keras.ops.convert_to_numpy(losses), expected, rtol=1e-5)


@pytest.mark.parametrize(
    "scores, labels",
    [
        # Rows 0 and 1 compete with one another; row 2 with "kim"; row 3 has no pronoun.
        ([-1, 9, -2, 9, 0, -1], "1011"),
        ([-2, 9, -1, 9, 0, 1], "0101"),
    ],
)
def test_decode(ranker, scores, labels):
    features = ranker.features(ROWS)
    outputs = [{"score": score} for score in scores]
    assert ranker.decode(ROWS, features, outputs) == list(labels)
    # Alone, row 0 is compared with what the rules extract: "the plate".
    alone = ranker.decode(ROWS[:1], features[:2], [{"score": -1}, {"score": -3}])
    assert alone == ["1"]


@pytest.mark.parametrize("score, label", [(0.1, "1"), (-0.1, "0")])
def test_without_rivals_the_sign_decides(ranker, score, label):
    row = ("Because it fell, kim saw.", "Because the cup fell, kim saw.")
    features = ranker.features([row])
    features = [f for f in features if f.example == 0][:1]
    assert ranker.decode([row], features, [{"score": score}]) == [label]


def test_no_pronoun_anywhere(ranker):
    assert ranker.predictions([ROWS[3], ("", "")]) == ["1", "1"]


def test_it_learns_and_saves(ranker, tmp_path):
    rows, labels = ROWS[:3], ["0", "1", "0"]
    ranker.compile(keras.optimizers.Adam(1e-2), jit_compile=COMPILED)
    batches = ranker.batches(ranker.features(rows, labels), 4, seed=0)
    ranker.fit(batches, epochs=15, verbose=0, shuffle=False)
    assert ranker.predictions(rows) == labels
    ranker.save_to_preset(tmp_path / "ranker")
    loaded = CandidateRanker.from_preset(tmp_path / "ranker")
    assert loaded.fallback == "1"
    weights = zip(ranker.get_weights(), loaded.get_weights(), strict=True)
    assert all(np.array_equal(one, two) for one, two in weights)


def test_unknown_fallback():
    with pytest.raises(ValueError, match="`fallback` must be one of"):
        CandidateRanker.from_preset(
            "tiny", tokenizer=WordPieceTokenizer(SPECIAL_TOKENS), fallback="2"
        )
