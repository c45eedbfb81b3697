"""When a fine-tuning run counts as failed, for each kind of task."""

import pytest

from keras_corrupt.tasks.conll import TaggingTask
from keras_corrupt.tasks.question_answering import Answer
from keras_corrupt.tasks.squad import SquadTask
from keras_corrupt.tasks.task import Split, Task

BALANCED = ["cat", "dog"] * 100
RARE = ["cat"] * 199 + ["dog"]


@pytest.mark.parametrize(
    "labels, predictions, failure",
    [
        (BALANCED, ["cat"] * 200, "it predicts 'cat' for 200 of 200 examples"),
        (
            BALANCED,
            ["cat"] * 199 + ["dog"],
            "it predicts 'cat' for 199 of 200 examples",
        ),
        (BALANCED, ["cat"] * 198 + ["dog"] * 2, None),
        (BALANCED, BALANCED, None),
        # Where nearly all have one label, so have good predictions.
        (RARE, RARE, None),
        (RARE, ["dog"] + ["cat"] * 199, None),
        (RARE, ["cat"] * 200, "it predicts 'cat' for 200 of 200 examples"),
        (["cat"] * 5, ["cat"] * 5, None),
        ([1.0, 2.0, 4.0], [2.0, 2.0, 2.0], "it predicts '2.0' for 3 of 3 examples"),
        ([1.0, 2.0, 4.0], [2.0, 2.0, 2.001], None),
    ],
)
def test_classes_and_scores(labels, predictions, failure):
    assert Task().failure(predictions, Split(labels, labels)) == failure


GOLD = [["O"] * 98 + ["B-X", "I-X"], ["O"] * 98 + ["B-Y", "O"]]
NONE = [["O"] * 100] * 2
ONE = [GOLD[0], ["O"] * 100]
WRONG = [["B-X"] + ["O"] * 99, ["O"] * 100]


@pytest.mark.parametrize(
    "scheme, predictions, failure",
    [
        ("bio", NONE, "it tags every word as 'O'"),
        ("bio", WRONG, "no span that it finds is right"),
        ("bio", ONE, None),  # 99% of its tags are the same, and one span is right
        ("bio", GOLD, None),
        ("plain", NONE, "it tags every word as 'O'"),
        ("plain", WRONG, None),
    ],
)
def test_tags(scheme, predictions, failure):
    task = TaggingTask.__new__(TaggingTask)
    task.scheme = scheme
    split = Split([["w"] * 100] * 2, GOLD)
    assert task.failure(predictions, split) == failure
    assert task.failure(NONE, Split(split.examples, NONE)) is None


def squad(answerability):
    task = SquadTask.__new__(SquadTask)
    task.answerability = answerability
    return task


@pytest.mark.parametrize(
    "texts, failure",
    [
        (["the mat", "a rug"], None),
        (["the mat", "the mat"], None),
        (["a hat", "a hat"], "no answer that it gives has a word of the right one"),
        (["", ""], "it answers none of 2 questions"),
    ],
)
@pytest.mark.parametrize("answerability", [False, True])
def test_answers(texts, failure, answerability):
    pytest.importorskip("official.nlp.tools.squad_evaluate_v1_1")
    answers = [Answer(t, 0, 0.0, -9.0 if t else 9.0) for t in texts]
    split = Split(["?"] * 2, [[("a mat", 0)], [("the rug", 0)]], ["1", "2"])
    assert squad(answerability).failure(answers, split) == failure


def test_answers_where_there_are_none():
    pytest.importorskip("official.nlp.tools.squad_evaluate_v1_1")
    split = Split(["?"] * 2, [[], []], ["1", "2"])
    answers = [Answer("a mat", 0, 0.0, null_odds=9.0)] * 2
    assert squad(True).failure(answers, split) is None
