"""A model of each kind that answers rows."""

import pytest

from keras_corrupt.downstream import (
    MultiLabelClassifier,
    PromptClassifier,
    SentenceEncoder,
)
from keras_corrupt.multitask import MultiTaskModel
from keras_corrupt.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer
from tests.cross_view.conftest import make_parser, make_tagger, make_translator
from tests.downstream.conftest import ENCODER, scrambled
from tests.multitask.conftest import EXAMPLES, TASKS, WHERE

WORDS = "the a cat cats dog sat ran on under mat rug it . meow woof where".split()
TOKENIZER = WordPieceTokenizer([*SPECIAL_TOKENS, *WORDS])
TEXTS = ["the cat", "a dog ran on the mat", "", "sat the cat under a rug . it ran"]
SENTENCES = [["the", "cats", "sat"], ["a"], [], ["dog", "ran", "on", "a", "mat"]]
PRONOUN = "The cat sat on the mat . It ran ."
PROMPT = {
    "template": "{first} , it [MASK] .",
    "label_words": {"cat": "meow", "dog": "woof"},
    "demonstrations": [["a cat", "cat"], ["the cat", "cat"], ["a dog", "dog"]],
    "num_contexts": 2,
}


def texts(model, **arguments):
    return scrambled(model(ENCODER, TOKENIZER, dropout=0.0, **arguments))


#: Kind -> function that makes its model; and raw examples of it, task by task.
MODELS = {
    "several": lambda: texts(MultiTaskModel, tasks=TASKS),
    "multi_label": lambda: texts(MultiLabelClassifier, labels=["x", "y", "z"]),
    "prompt": lambda: texts(PromptClassifier, **PROMPT),
    "vectors": lambda: texts(SentenceEncoder),
    "tagger": make_tagger,
    "parser": make_parser,
    "translator": make_translator,
}
RAW = {
    "several": {
        **EXAMPLES,
        "animals": TEXTS,
        "words": SENTENCES,
        "places": [WHERE] * 2,
        # Which of a pronoun's candidates is right depends on all of them.
        "pronouns": [
            ("The dog ran .", "The dog ran ."),
            (PRONOUN, "The cat ran ."),
            (PRONOUN, "The mat ran ."),
        ],
    },
    "multi_label": {None: TEXTS},
    "prompt": {None: TEXTS},
    "vectors": {None: [*TEXTS, ("the cat", "a dog")]},
    "tagger": {None: SENTENCES},
    "parser": {None: SENTENCES},
    "translator": {None: ["the cat", "", "a dog"]},
}
CASES = [(kind, task) for kind, tasks in RAW.items() for task in tasks]


@pytest.fixture(autouse=True, scope="module")
def few_steps(eager):
    """Tests of this folder make few."""


@pytest.fixture(scope="session")
def made():
    """Returns a function that makes a kind's model once."""
    kept = {}

    def of_kind(kind):
        if kind not in kept:
            kept[kind] = MODELS[kind]()
        return kept[kind]

    return of_kind
