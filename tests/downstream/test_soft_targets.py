"""Soft targets of each kind of model: their losses against NumPy."""

import keras
import numpy as np
import pytest
from scipy.special import expit, log_softmax, softmax

from keras_corrupt.downstream import (
    CandidateRanker,
    SpanExtractor,
    TextClassifier,
    TokenTagger,
)
from keras_corrupt.downstream.soft_targets import cross_entropy, mixed
from keras_corrupt.tasks.question_answering import Question
from tests.conftest import gradients_of
from tests.downstream.conftest import ENCODER, scrambled

WINOGRAD = "The cat sat on the mat . It ran .", "The cat ran ."


def kinds(tokenizer):
    """Model, examples, labels of each kind."""
    question = Question("sat the cat", "the cat sat on a mat . a dog ran")
    return {
        "classes": (
            TextClassifier(ENCODER, tokenizer, labels=["a", "b", "c"]),
            ["the cat", ("a dog ran", "the mat"), "sat"],
            ["b", "a", "c"],
        ),
        "scores": (
            TextClassifier(
                ENCODER, tokenizer, score_range=(1, 5), score_activation="sigmoid"
            ),
            ["the cat", "a dog ran"],
            [1, 4],
        ),
        "tags": (
            TokenTagger(ENCODER, tokenizer, labels=["N", "V", "D"]),
            [["the", "cats", "sat"], ["a", "dog"]],
            [["D", "N", "V"], ["D", "N"]],
        ),
        "spans": (
            SpanExtractor(ENCODER, tokenizer, answerability=True),
            [question, question],
            [[("a mat", 15)], []],
        ),
        "bert_spans": (
            SpanExtractor(ENCODER, tokenizer, head_type="bert"),
            [question],
            [[("dog", 25)]],
        ),
        "candidates": (CandidateRanker(ENCODER, tokenizer), [WINOGRAD], ["1"]),
    }


KINDS = ("classes", "scores", "tags", "spans", "bert_spans", "candidates")


@pytest.fixture(params=KINDS)
def kind(request, tokenizer):
    model, examples, labels = kinds(tokenizer)[request.param]
    scrambled(model)
    return request.param, model, model.features(examples, labels)


def losses_by_hand(name, model, feature, output, targets):
    """The loss of one sequence, in NumPy."""
    tokens = len(feature.inputs["token_ids"])
    if name == "classes":
        return -(targets["label"] * log_softmax(output["logits"])).sum()
    if name == "scores":
        return (output["logits"][0] - targets["score"]) ** 2
    if name == "tags":
        words = feature.inputs["word_starts"] > 0
        logs = log_softmax(output["logits"][:tokens], axis=-1)
        return -(targets["tag"] * logs).sum(axis=-1)[words].mean()
    if name == "candidates":
        p, q = targets["right"], expit(output["score"])
        return -(p * np.log(q) + (1 - p) * np.log(1 - q))
    loss = 0.0
    for end in ("start", "end"):
        logs = log_softmax(output[f"{end}_logits"][:tokens])
        loss -= (targets[end] * logs).sum() / 2
    if "unanswerable" in targets:
        p, q = targets["unanswerable"], expit(output["null_score"])
        loss -= 0.5 * (p * np.log(q) + (1 - p) * np.log(1 - q))
    return loss


def test_losses_with_a_teachers_outputs_are_those_of_numpy(kind):
    name, model, features = kind
    outputs = model.outputs(features)
    teacher = scrambled(type(model).from_config(model.get_config()))
    teacher.tokenizer = model.tokenizer
    soft = teacher.soft_targets(features, teacher.outputs(features))
    assert len(soft) == len(features)
    for feature, output, targets in zip(features, outputs, soft, strict=True):
        assert targets.keys() <= feature.targets.keys()
        tokens = len(feature.inputs["token_ids"])
        for target in model.soft_targets_of_tokens:
            assert len(targets[target]) == tokens
        expected = losses_by_hand(name, model, feature, output, targets)
        batch = {k: np.array(v, "float32")[None] for k, v in targets.items()}
        cut = {
            k: v[None, :tokens] if k.endswith("_logits") or name == "tags" else v[None]
            for k, v in output.items()
        }
        loss = model.sequence_losses(cut, batch)
        np.testing.assert_allclose(np.array(loss), [expected], rtol=2e-5)


def test_no_target_is_better_than_the_models_own_outputs(kind):
    """Cross-entropy and squared error are least for the teacher itself."""
    _, model, features = kind
    outputs = model.outputs(features)
    soft = model.soft_targets(features, outputs)
    x, y, _ = model.batches(features[:1], 1)[0]
    length = x["token_ids"].shape[1]
    targets = {}
    for key, array in soft[0].items():
        array = np.asarray(array, "float32")
        if key in model.soft_targets_of_tokens:
            padding = [(0, length - len(array))] + [(0, 0)] * (array.ndim - 1)
            array = np.pad(array, padding)
        targets[key] = array[None]

    def loss():
        return model.compute_loss(x, {**y, **targets}, model(x))

    found = gradients_of(loss, model)
    assert max(np.abs(g).max() for g in found.values()) < 1e-5


def test_labels_are_distributions_with_one_class():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(4, 5, 3)).astype("float32")
    labels = rng.integers(0, 3, (4, 5))
    one_hot = mixed(labels, softmax(logits, axis=-1), 1.0)
    hard, soft = cross_entropy(labels, logits), cross_entropy(one_hot, logits)
    np.testing.assert_allclose(np.array(hard), np.array(soft), rtol=1e-5)


def test_mixtures_are_those_of_the_thesis():
    teacher = np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
    np.testing.assert_allclose(
        mixed(np.array([2, 0]), teacher, 0.25),
        [[0.15, 0.375, 0.475], [0.325, 0.075, 0.6]],
    )
    np.testing.assert_allclose(
        mixed(np.array([0.5, 1.0]), np.array([0.1, 0.6]), 0.25), [0.2, 0.7]
    )


def test_a_sigmoid_keeps_scores_in_their_range(tokenizer):
    rater = TextClassifier(
        ENCODER, tokenizer, score_range=(1, 5), score_activation="sigmoid"
    )
    kernel, bias = rater.head.get_weights()
    for logit in (-3.0, 0.0, 3.0):
        rater.head.set_weights([0 * kernel, 0 * bias + logit])
        assert rater.predictions(["cat"]) == pytest.approx([1 + 4 * expit(logit)])
    for wrong in ({"labels": ["a", "b"]}, {"score_range": (0, 1)}):
        activation = "sigmoid" if "labels" in wrong else "tanh"
        with pytest.raises(ValueError, match="score_activation"):
            TextClassifier(ENCODER, tokenizer, score_activation=activation, **wrong)


def test_models_can_have_one_encoder(tokenizer):
    first = TextClassifier(ENCODER, tokenizer, labels=["a", "b"])
    second = TokenTagger(first.encoder, tokenizer, labels=["N", "V"])
    assert second.encoder is first.encoder
    assert second.get_config()["encoder"] == first.get_config()["encoder"]
    keras.utils.set_random_seed(1)
    scrambled(first)
    inputs = second.features([["the", "cat"]])[0].inputs
    batch = {k: v[None] for k, v in inputs.items()}
    np.testing.assert_array_equal(
        np.array(first.encoder(batch)), np.array(second.encoder(batch))
    )
