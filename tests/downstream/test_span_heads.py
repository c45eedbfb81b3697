import itertools

import numpy as np
import pytest

from keras_corrupt.downstream.span_extractor import SpanExtractor
from keras_corrupt.downstream.span_heads import (
    IMPOSSIBLE,
    BertSpanHead,
    XLNetSpanHead,
)
from tests.conftest import SIZES

HIDDEN, LENGTH = 6, 9
SELECTABLE = np.array(
    [[1, 0, 0, 1, 1, 1, 1, 0, 0], [1, 0, 1, 1, 0, 0, 0, 0, 0]], "int32"
)


def make_head(cls, **arguments):
    """A head with weights large enough for every part of it to matter."""
    head = cls(HIDDEN, dropout=0.0, **arguments)
    head.build((None, None, HIDDEN))
    rng = np.random.default_rng(1)
    head.set_weights([rng.normal(0, 0.7, w.shape) for w in head.get_weights()])
    return head


@pytest.fixture
def hidden():
    shape = (2, LENGTH, HIDDEN)
    return np.random.default_rng(0).normal(size=shape).astype("float32")


# === NumPy's version of the formulas ===


def log_softmax(x):
    x = x - x.max()
    return x - np.log(np.exp(x).sum())


def dense(layer, x):
    bias = np.array(layer.bias) if layer.use_bias else 0.0
    return x @ np.array(layer.kernel) + bias


def numpy_xlnet(head, hidden, selectable):
    """log p(start), log p(end | start) as [start, end], and the null score."""
    allowed = np.flatnonzero(selectable)
    start = np.full(LENGTH, -np.inf)
    start[allowed] = log_softmax(dense(head.start, hidden)[allowed, 0])
    kernel = np.concatenate([head.end_of_token.kernel, head.end_of_start.kernel])
    end = np.full((LENGTH, LENGTH), -np.inf)
    for i in allowed:
        pairs = np.stack([np.concatenate([hidden[j], hidden[i]]) for j in allowed])
        inner = np.tanh(pairs @ kernel + np.array(head.end_of_token.bias))
        mean, variance = inner.mean(1, keepdims=True), inner.var(1, keepdims=True)
        inner = (inner - mean) / np.sqrt(variance + 1e-12)
        inner = inner * np.array(head.end_norm.gamma) + np.array(head.end_norm.beta)
        end[i, allowed] = log_softmax(dense(head.end, inner)[:, 0])
    expected = sum(np.exp(start[i]) * hidden[i] for i in allowed)
    joined = np.concatenate([expected, hidden[0]])
    null = dense(head.null, np.tanh(dense(head.null_hidden, joined)))[0]
    return start, end, null


def test_xlnet_head_is_its_formula(hidden):
    head = make_head(XLNetSpanHead, answerability=True)
    gold = np.array([4, 0], "int32")
    outputs = head(hidden, SELECTABLE, gold)
    for row in range(2):
        start, end, null = numpy_xlnet(head, hidden[row], SELECTABLE[row])
        logits = {name: np.array(value[row]) for name, value in outputs.items()}
        for name, expected in (("start", start), ("end", end[gold[row]])):
            found = log_softmax(logits[f"{name}_logits"])
            chosen = SELECTABLE[row] > 0
            np.testing.assert_allclose(found[chosen], expected[chosen], atol=1e-5)
            assert (found[~chosen] < -1e8).all()
        np.testing.assert_allclose(logits["null_score"], null, atol=1e-5)


def test_loss_is_its_formula(hidden, tokenizer):
    model = SpanExtractor(SIZES["discriminator"], tokenizer, answerability=True)
    head = make_head(XLNetSpanHead, answerability=True)
    targets = {
        "start": np.array([4, 0], "int32"),
        "end": np.array([6, 0], "int32"),
        "unanswerable": np.array([0, 1], "int32"),
    }
    outputs = head(hidden, SELECTABLE, targets["start"])
    found = np.array(model.sequence_losses(outputs, targets))
    for row in range(2):
        start, end, null = numpy_xlnet(head, hidden[row], SELECTABLE[row])
        i, j, label = (targets[k][row] for k in ("start", "end", "unanswerable"))
        probability = 1 / (1 + np.exp(-null))
        binary = -np.log(probability if label else 1 - probability)
        expected = -(start[i] + end[i, j]) / 2 + 0.5 * binary
        np.testing.assert_allclose(found[row], expected, rtol=1e-5)


def spans_of(outputs, row):
    """The spans of a beam, with scores."""
    spans = {}
    for i, start in enumerate(np.array(outputs["starts"][row])):
        for j, end in enumerate(np.array(outputs["ends"][row, i])):
            score = float(outputs["start_scores"][row, i])
            score += float(outputs["end_scores"][row, i, j])
            if score > IMPOSSIBLE / 2:
                spans[int(start), int(end)] = score
    return spans


@pytest.mark.parametrize("beam_size", [1, 2, 20])
def test_xlnet_beam_holds_the_best_spans(hidden, beam_size):
    head = make_head(
        XLNetSpanHead, answerability=True, beam_size=beam_size, max_answer_length=3
    )
    outputs = head(hidden, SELECTABLE)
    for row in range(2):
        start, end, null = numpy_xlnet(head, hidden[row], SELECTABLE[row])
        context = np.flatnonzero(SELECTABLE[row])[1:]
        expected = {}
        for i in sorted(context, key=lambda i: -start[i])[:beam_size]:
            ends = [j for j in context if i <= j < i + 3]
            for j in sorted(ends, key=lambda j: -end[i, j])[:beam_size]:
                expected[int(i), int(j)] = start[i] + end[i, j]
        found = spans_of(outputs, row)
        assert found.keys() == expected.keys()
        for span, score in expected.items():
            np.testing.assert_allclose(found[span], score, atol=1e-5)
        np.testing.assert_allclose(outputs["null_score"][row], null, atol=1e-5)


def test_bert_head_is_its_formula(hidden):
    head = make_head(BertSpanHead, answerability=True, max_answer_length=3)
    logits = dense(head.start_and_end, hidden)
    training = head(hidden, SELECTABLE, np.array([4, 0]))
    outputs = head(hidden, SELECTABLE)
    for row in range(2):
        chosen = SELECTABLE[row] > 0
        for name, column in (("start_logits", 0), ("end_logits", 1)):
            found = np.array(training[name][row])
            np.testing.assert_allclose(
                found[chosen], logits[row, chosen, column], atol=1e-5
            )
            assert (found[~chosen] < -1e8).all()
        context = np.flatnonzero(chosen)[1:]
        expected = {
            (int(i), int(j)): logits[row, i, 0] + logits[row, j, 1]
            for i, j in itertools.product(context, context)
            if i <= j < i + 3
        }
        found = spans_of(outputs, row)
        assert found.keys() == expected.keys()
        for span, score in expected.items():
            np.testing.assert_allclose(found[span], score, atol=1e-5)
        np.testing.assert_allclose(
            outputs["null_score"][row], logits[row, 0].sum(), atol=1e-5
        )
