"""Small tasks of several kinds."""

import pytest

from keras_corrupt.tasks.question_answering import Question
from tests.downstream.conftest import ENCODER, preset  # noqa: F401

TASKS = {
    "animals": {"class": "TextClassifier", "labels": ["cat", "dog"]},
    "length": {
        "class": "TextClassifier",
        "score_range": [0, 8],
        "score_activation": "sigmoid",
    },
    "words": {"class": "TokenTagger", "labels": ["D", "N", "V"]},
    "places": {"class": "SpanExtractor", "answerability": True},
    "pronouns": {"class": "CandidateRanker"},
}
WHERE = Question("where sat the cat", "the cat sat on a mat . a dog ran")

EXAMPLES = {
    "animals": ["the cat", "a dog ran", "the slow cat sat"],
    "length": ["the cat", ("a dog ran", "the cat")],
    "words": [["the", "cats", "sat"], ["a", "dog"], ["dog", "ran", "on", "a", "mat"]],
    "places": [WHERE, WHERE],
    "pronouns": [("The cat sat on the mat . It ran .", "The cat ran .")],
}
LABELS = {
    "animals": ["cat", "dog", "cat"],
    "length": [2, 5.0],
    "words": [["D", "N", "V"], ["D", "N"], ["N", "V", "D", "D", "N"]],
    "places": [[("a mat", 15)], []],
    "pronouns": ["1"],
}


@pytest.fixture(autouse=True, scope="module")
def few_steps(eager):
    """Tests of this folder make few."""


@pytest.fixture
def encoder():
    return ENCODER
