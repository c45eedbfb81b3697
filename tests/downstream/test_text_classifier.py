import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from keras_corrupt.downstream import TextClassifier, TokenTagger
from keras_corrupt.downstream.array_targets import class_numbers
from keras_corrupt.downstream.text_features import cut
from keras_corrupt.models import Electra
from keras_corrupt.presets import load_preset
from tests.downstream.conftest import ENCODER, scrambled

TEXTS = ["the cat sat", ("a dog ran", "the slow dog"), "", "cats , dogs ."]


@pytest.fixture
def classifier(tokenizer):
    return scrambled(TextClassifier(ENCODER, tokenizer, labels=["no", "yes", "?"]))


@pytest.fixture
def rater(tokenizer):
    return scrambled(TextClassifier(ENCODER, tokenizer, score_range=(1, 5)))


def test_labels_may_be_numpys(tokenizer):
    model = TextClassifier(ENCODER, tokenizer, labels=np.array([3, 1]))
    assert json.loads(json.dumps(model.get_config()["labels"])) == [3, 1]
    with pytest.raises(ValueError, match="`examples` must be a list"):
        model.predictions(np.array([["a", "b"]]))


def weights_equal(a, b):
    pairs = zip(a.get_weights(), b.get_weights(), strict=True)
    return all(np.array_equal(x, y) for x, y in pairs)


class TestCut:
    @given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 40))
    def test_pairs_lose_tokens_of_the_longer_one_first(self, n, m, room):
        first, second = list(range(n)), list(range(100, 100 + m))
        expected = first[:], second[:]
        while len(expected[0]) + len(expected[1]) > room:
            longer = 0 if len(expected[0]) > len(expected[1]) else 1
            expected[longer].pop()
        assert cut([first, second], room) == [*expected]

    def test_single_texts_lose_their_end(self):
        assert cut([[1, 2, 3]], 2) == [[1, 2]]


class TestFeatures:
    def test_ids_and_segments_by_hand(self, classifier, tokenizer):
        ids = {token: i for i, token in enumerate(tokenizer.vocabulary)}
        single, pair = classifier.features(
            ["the cats", ("dog", "a mat")], ["yes", "no"]
        )
        names = ["[CLS]", "the", "cat", "##s", "[SEP]"]
        assert single.inputs["token_ids"].tolist() == [ids[n] for n in names]
        assert single.inputs["segment_ids"].tolist() == [0] * 5
        names = ["[CLS]", "dog", "[SEP]", "a", "mat", "[SEP]"]
        assert pair.inputs["token_ids"].tolist() == [ids[n] for n in names]
        assert pair.inputs["segment_ids"].tolist() == [0, 0, 0, 1, 1, 1]
        assert [single.targets, pair.targets] == [{"label": 1}, {"label": 0}]
        assert [single.example, pair.example] == [0, 1]

    def test_long_texts_fill_max_length(self, classifier, tokenizer):
        long = "the " * 50
        for example in (long, (long, long), (long, "cat"), ("cat", long)):
            (feature,) = classifier.features([example])
            ids = feature.inputs["token_ids"]
            assert len(ids) == 24 and ids[-1] == tokenizer.separate_id
        cat = tokenizer.encode("cat")[0]
        assert cat in classifier.features([(long, "cat")])[0].inputs["token_ids"]

    def test_errors_name_the_example(self, classifier, rater):
        for wrong in (5, None, ("a", None), ("a", "b", "c"), ()):
            with pytest.raises(ValueError, match=r"examples\[1\]"):
                classifier.features(["a", wrong])
        with pytest.raises(ValueError, match="'maybe'.*'yes'"):
            classifier.features(["a"], ["maybe"])
        with pytest.raises(ValueError, match="2 for 1"):
            classifier.features(["a"], ["no", "no"])
        for wrong in (0.9, 5.1, float("nan")):
            with pytest.raises(ValueError, match="score_range"):
                rater.features(["a"], [wrong])


class TestPredictions:
    def test_probabilities_and_labels_by_hand(self, classifier):
        features = classifier.features(TEXTS)
        expected = []
        for f in features:  # alone and without padding
            inputs = {k: v[None] for k, v in f.inputs.items()}
            inputs["padding_mask"] = np.ones_like(inputs["token_ids"])
            hidden = np.array(classifier.encoder(inputs))[0, 0]
            kernel, bias = classifier.head.get_weights()
            e = np.exp(hidden @ kernel + bias)
            expected.append(e / e.sum())
        probabilities = classifier.probabilities(TEXTS, batch_size=3)
        np.testing.assert_allclose(probabilities, expected, atol=1e-5)
        best = np.argmax(expected, axis=1)
        labels = [["no", "yes", "?"][i] for i in best]
        assert classifier.predictions(TEXTS, batch_size=2) == labels

    def test_scores_stay_in_their_range(self, rater):
        kernel, bias = rater.head.get_weights()
        for logit, score in [(-0.5, 1.0), (0.25, 2.0), (1.0, 5.0), (3.0, 5.0)]:
            rater.head.set_weights([0 * kernel, 0 * bias + logit])
            assert rater.predictions(["cat"]) == pytest.approx([score])

    def test_a_rater_has_no_probabilities(self, rater):
        with pytest.raises(ValueError, match="number"):
            rater.probabilities(["cat"])


class TestLosses:
    def test_an_array_of_scores_is_within_the_range(self, rater):
        features = rater.features(["the cat", "a dog"], [1.5, 4])
        (inputs, targets, *_), *_ = rater.batches(features, 2)
        outputs = rater(inputs)
        losses = (
            rater.compute_loss(inputs, y, outputs)
            for y in (targets, np.array([1.5, 4.0]))
        )
        one, other = map(float, losses)
        assert one == pytest.approx(other, rel=1e-6)

    @pytest.mark.parametrize("form", ["column", "names", "distributions", "floats"])
    def test_targets_of_fit_in_other_forms(self, classifier, form):
        inputs = classifier.tokenizer.pack(["the cat", "a dog", "a mat"], 8)
        numbers = np.array([2, 0, 1])
        targets = {
            "column": numbers[:, None],  # as Keras has a pandas Series
            "names": [classifier.labels[n] for n in numbers],
            "distributions": np.eye(3)[numbers],
            "floats": numbers.astype("float32")[:, None],
        }[form]
        classifier.compile(keras.optimizers.SGD(0.0))
        losses = [classifier.evaluate(inputs, y, verbose=0) for y in (numbers, targets)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-6)

    @pytest.mark.parametrize(
        ("targets", "message"),
        [
            ([1, 2, 3], "numbers, from 0 to 2; got 3"),
            ([-1, 0, 1], "got -1"),
            (["no", "yes", "maybe"], "got 'maybe'"),
            (np.zeros((3, 2)), r"one for each text; got the shape \(3, 2\)"),
        ],
    )
    def test_targets_of_fit_that_are_none(self, classifier, targets, message):
        """They are refused before a step, which on JAX reads something else."""
        inputs = classifier.tokenizer.pack(["the cat", "a dog", "a mat"], 8)
        classifier.compile(keras.optimizers.SGD(0.0))
        held_out = inputs, targets
        for call in (
            lambda: classifier.fit(inputs, targets),
            lambda: classifier.evaluate(inputs, targets),
            lambda: classifier.fit(inputs, [0, 1, 2], validation_data=held_out),
        ):
            with pytest.raises(ValueError, match=message):
                call()

    def test_numbers_that_are_labels_are_not_places(self):
        labels = [5, 1, 3]
        assert class_numbers([1, 3, 5], labels).tolist() == [1, 2, 0]
        assert class_numbers([True, False], [False, True]).tolist() == [1, 0]
        with pytest.raises(ValueError, match=r"are labels, of \[5, 1, 3\]; got 0"):
            class_numbers([1, 0], labels)

    @pytest.mark.parametrize("kind", ["generator", "dataset"])
    def test_numbers_of_no_label_in_batches(self, classifier, kind):
        """On JAX such a number has the loss 0."""
        inputs = classifier.tokenizer.pack(["the cat", "a dog", "a mat"], 8)
        targets = np.array([0, 3, 2])
        batch, error = (inputs, targets[:, None]), ValueError
        batches = (part for part in [batch])
        if kind == "dataset":
            error = tf.errors.InvalidArgumentError
            batches = tf.data.Dataset.from_tensors((inputs, targets))
        classifier.compile(keras.optimizers.SGD(0.0))
        with pytest.raises(error, match="places in `labels`, from 0 to 2"):
            classifier.fit(batches)

    def test_scores_of_fit_are_in_the_range(self, rater):
        inputs, scores = rater.tokenizer.pack(["the cat", "a dog"], 8), [1.5, 4]
        rater.compile(keras.optimizers.SGD(0.0))
        column = np.array(scores)[:, None]
        losses = [rater.evaluate(inputs, y, verbose=0) for y in (scores, column)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-6)
        with pytest.raises(ValueError, match="The score 50.0 is not within"):
            rater.fit(inputs, [1.0, 50.0])

    def test_a_step_that_fails_leaves_the_weights(self, classifier):
        before = classifier.probabilities(["the cat"])
        inputs = classifier.tokenizer.pack(["the cat", "a dog"], 8)
        classifier.compile(keras.optimizers.SGD(0.1))
        with pytest.raises(ValueError, match="trains on pairs of inputs and targets"):
            classifier.fit(inputs)
        after = classifier.probabilities(["the cat"])
        np.testing.assert_array_equal(after, before)

    def test_another_loss_is_refused(self, classifier):
        classifier.compile("sgd", loss="mse")
        with pytest.raises(ValueError, match="a loss of its own.*without `loss`"):
            classifier.fit(np.ones((2, 8), "int32"), np.array([0, 1]))

    def test_texts_are_refused_with_the_way(self, classifier):
        with pytest.raises(ValueError, match=r"model.batches\(model.features\("):
            classifier.predict(["the cat", "a dog"])

    def test_cross_entropy(self, classifier):
        logits = np.array([[1.0, 2.0, 0.5], [0.0, 0.0, 3.0]], "float32")
        label = np.array([1, 0], "int32")
        log_sum = np.log(np.exp(logits).sum(axis=1))
        losses = classifier.sequence_losses({"logits": logits}, {"label": label})
        np.testing.assert_allclose(losses, log_sum - [2.0, 0.0], rtol=1e-6)

    def test_squared_error_of_the_place_in_the_range(self, rater):
        ((_, targets, _),) = rater.features(["a"], [2])
        assert targets == {"score": 0.25}
        outputs = {"logits": np.array([[1.0]], "float32")}
        losses = rater.sequence_losses(outputs, {"score": np.array([0.25], "float32")})
        np.testing.assert_allclose(losses, [0.5625])

    def test_rows_that_fill_up_do_not_count(self, classifier):
        features = classifier.features(TEXTS[:3], ["yes", "no", "?"])
        means = []
        for batch_size in (3, 8):
            ((x, y, w),) = classifier.batches(features, batch_size)
            loss = classifier.compute_loss(x, y, classifier(x), w)
            means.append(float(loss))
        assert means[0] == pytest.approx(means[1], abs=1e-6)

    @pytest.mark.usefixtures("graphs")
    def test_fit_learns(self, classifier):
        texts = ["the cat", "a cat sat", "the dog", "a slow dog"] * 8
        labels = ["yes", "yes", "no", "no"] * 8
        classifier.compile(keras.optimizers.Adam(1e-2))
        features = classifier.features(texts, labels)
        classifier.fit(classifier.batches(features, 8, seed=0), epochs=6, verbose=0)
        assert classifier.predictions(texts) == labels


class TestPresets:
    @pytest.mark.parametrize("kind", ["classifier", "rater"])
    def test_round_trip(self, kind, tmp_path, request):
        model = request.getfixturevalue(kind)
        model.save_to_preset(tmp_path / "p")
        for loaded in (
            TextClassifier.from_preset(tmp_path / "p"),
            load_preset(tmp_path / "p"),
        ):
            assert loaded.get_config() == model.get_config()
            assert weights_equal(loaded, model)
            assert loaded.predictions(TEXTS) == model.predictions(TEXTS)

    def test_a_pretrained_model_gives_its_encoder(self, tmp_path, sizes, tokenizer):
        sizes["discriminator"] |= {"vocabulary_size": 60}
        pretrained = scrambled(Electra(**sizes, mask_rate=0.2, tokenizer=tokenizer))
        pretrained.save_to_preset(tmp_path / "p")
        model = TextClassifier.from_preset(tmp_path / "p", labels=["a", "b"])
        assert weights_equal(model.encoder, pretrained.encoder)
        assert model.tokenizer.fingerprint == tokenizer.fingerprint

    def test_another_class_gives_its_encoder(self, tmp_path, tokenizer):
        tagger = scrambled(TokenTagger(ENCODER, tokenizer, labels=["a", "b"]))
        tagger.save_to_preset(tmp_path / "p")
        model = TextClassifier.from_preset(tmp_path / "p", labels=["a", "b"])
        assert weights_equal(model.encoder, tagger.encoder)
        assert not weights_equal(model.head, tagger.head)

    def test_the_same_labels_in_another_order_are_told(self, tmp_path, classifier):
        classifier.save_to_preset(tmp_path / "p")
        with pytest.warns(UserWarning, match="The head is new, because `labels` is"):
            TextClassifier.from_preset(tmp_path / "p", labels=["no", "?", "yes"])

    def test_another_activation_makes_a_new_head(self, tmp_path, tokenizer):
        for number, (saved, asked) in enumerate([(None, "sigmoid"), ("sigmoid", None)]):
            rater = TextClassifier(
                ENCODER, tokenizer, score_range=(1, 5), score_activation=saved
            )
            scrambled(rater).save_to_preset(tmp_path / str(number))
            with pytest.warns(UserWarning, match="because `score_activation` is"):
                model = TextClassifier.from_preset(
                    tmp_path / str(number), score_range=(1, 5), score_activation=asked
                )
            assert not weights_equal(model.head, rater.head)

    def test_numbers_of_numpy_are_saved(self, tmp_path, tokenizer):
        for arguments in (
            {"score_range": (np.int64(1), np.int64(5))},
            {"labels": np.array([1, 2]), "label_weights": np.array([0.5, 2.0])},
        ):
            model = TextClassifier(ENCODER, tokenizer, **arguments)
            model.save_to_preset(tmp_path / "p")
            loaded = TextClassifier.from_preset(tmp_path / "p")
            assert loaded.get_config() == model.get_config()

    @pytest.mark.parametrize(
        "arguments", [{"labels": ["no", "maybe", "yes"]}, {"score_range": (0, 1)}]
    )
    def test_another_head_is_a_new_one(self, tmp_path, classifier, arguments):
        classifier.save_to_preset(tmp_path / "p")
        model = TextClassifier.from_preset(tmp_path / "p", **arguments)
        assert weights_equal(model.encoder, classifier.encoder)
        shared = set(model.head.get_weights()[0].ravel())
        assert not shared & set(classifier.head.get_weights()[0].ravel())

    def test_the_same_labels_keep_the_head(self, tmp_path, classifier):
        classifier.save_to_preset(tmp_path / "p")
        labels = ("no", "yes", "?")
        model = TextClassifier.from_preset(tmp_path / "p", labels=labels, dropout=0.2)
        assert model.dropout == model.encoder.dropout == 0.2
        assert weights_equal(model.head, classifier.head)

    def test_dropout_is_the_encoders(self, tmp_path, tokenizer):
        TextClassifier(ENCODER, tokenizer, ["a"], dropout=0.3).save_to_preset(
            tmp_path / "p"
        )
        model = TextClassifier.from_preset(tmp_path / "p", labels=["a", "b"])
        assert model.dropout == model.encoder.dropout == 0.3

    def test_without_weights(self, tmp_path, classifier):
        classifier.save_to_preset(tmp_path / "p")
        model = TextClassifier.from_preset(tmp_path / "p", load_weights=False)
        assert model.get_config() == classifier.get_config()
        ours, theirs = (m.encoder.embeddings.token for m in (model, classifier))
        assert not np.array_equal(ours.embeddings, theirs.embeddings)
        assert not weights_equal(model.head, classifier.head)

    def test_a_size_takes_the_tokenizer(self, tokenizer):
        model = TextClassifier.from_preset("tiny", tokenizer=tokenizer, labels=["a"])
        assert model.encoder.vocabulary_size == tokenizer.vocabulary_size
        assert model.max_length == model.encoder.max_length

    def test_errors(self, tmp_path, tokenizer):
        with pytest.raises(ValueError, match="'smal'.*'small'"):
            TextClassifier.from_preset("smal", labels=["a"])
        with pytest.raises(ValueError, match="pass `tokenizer`"):
            TextClassifier.from_preset("tiny", labels=["a"])
        with pytest.raises(ValueError, match="save_to_preset"):
            TextClassifier.from_preset(tmp_path, labels=["a"])


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({}, "either `labels`"),
        ({"labels": ["a"], "score_range": (0, 1)}, "either `labels`"),
        ({"labels": []}, "different names"),
        ({"labels": ["a", "a"]}, "different names"),
        ({"score_range": (1, 1)}, "least, greatest"),
        ({"labels": ["a"], "max_length": 25}, "24 positions"),
        ({"labels": ["a"], "max_length": 7}, "from 8"),
    ],
)
def test_wrong_arguments(tokenizer, arguments, message):
    with pytest.raises(ValueError, match=message):
        TextClassifier(ENCODER, tokenizer, **arguments)


def test_a_tokenizer_with_too_many_tokens(tokenizer):
    with pytest.raises(ValueError, match="tokens, more than the encoder's 40"):
        TextClassifier({**ENCODER, "vocabulary_size": 40}, tokenizer, labels=["a"])
