"""The parts of a page about a model: texts go in, coloured words or a table come out.

Nothing here knows how the page is drawn.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from keras_corrupt import scoring
from keras_corrupt.scoring import likelihoods

SENTENCE = "The captain of the ship looked at the because ."
SENTENCES = "The ship left the harbour.\nThe boat sailed away.\nThe judge read the law."


class Box(NamedTuple):
    """A place to write a text.

    Attributes:
        label: The text above it.
        example: The text that is in it at first.
        lines: How many lines it shows.
    """

    label: str
    example: str = ""
    lines: int = 2


class Tab(NamedTuple):
    """A part of the page.

    Attributes:
        title: Its name.
        about: A sentence about it.
        boxes: `Box`es, whose texts the function takes.
        answer: Function of the texts: returns pieces of text and their probabilities,
            or a `Table`.
        marks: Whether the function returns pieces of text.
    """

    title: str
    about: str
    boxes: tuple[Box, ...]
    answer: Callable
    marks: bool = False


class Table(NamedTuple):
    """Names of columns, and rows."""

    header: list
    rows: list


def tabs_of(model):
    """Returns the `Tab`s that a model has an answer for.

    Args:
        model: A pretrained or fine-tuned model.

    Example:

    >>> from keras_corrupt.models import load_preset
    >>> [tab.title for tab in tabs_of(load_preset("tiny_en"))]
    ['Replaced words', 'Nearest sentences']
    """
    has_text = getattr(model, "tokenizer", None) is not None
    tabs = []
    if has_text and hasattr(model, "score"):
        tabs.append(
            Tab(
                "Replaced words",
                "How likely each word is to have been replaced by another one.",
                (Box("Text", SENTENCE),),
                functools.partial(suspicious, model),
                marks=True,
            )
        )
    if has_text and _gives_likelihoods(model):
        tabs.append(
            Tab(
                "Likelihood",
                "The pseudo-log-likelihood of each sentence, in nats.",
                (Box("Sentences, one a line", SENTENCES, 5),),
                functools.partial(likely, model),
            )
        )
    if has_text and hasattr(model, "encoder"):
        tabs.append(
            Tab(
                "Nearest sentences",
                "The cosines of the sentences' vectors, the means of their tokens'.",
                (
                    Box("Sentence", "A vessel went to sea."),
                    Box("Sentences to compare, one a line", SENTENCES, 5),
                ),
                functools.partial(nearest, model),
            )
        )
    if hasattr(model, "answering"):
        for task in getattr(model, "tasks", [None]):
            answering = model.answering(task)
            tabs.append(
                Tab(
                    task or "Answer",
                    "What the fine-tuned model answers.",
                    tuple(Box(name) for name in answering.columns),
                    functools.partial(answered, answering),
                )
            )
    return tabs


def suspicious(model, text):
    """Returns pieces that make up a text, and the words' probabilities to be replaced.

    >>> from keras_corrupt.models import load_preset
    >>> pieces = suspicious(load_preset("tiny_en"), SENTENCE)
    >>> [piece for piece, probability in pieces if probability and probability > 0.8]
    ['because']
    """
    (words,) = scoring.replaced_words(model, [text])
    pieces, end = [], 0
    for word in words:
        pieces += [(text[end : word.start], None), (word.text, word.score)]
        end = word.end
    return [(piece, p) for piece, p in [*pieces, (text[end:], None)] if piece]


def likely(model, sentences):
    """Returns the likelihoods of lines, the most likely word for word first."""
    lines, rows = _lines(sentences), []
    scored = scoring.token_scores(model, lines)
    for text, (_, scores) in zip(lines, scored, strict=True):
        total = float(scores.sum())
        rows.append([text, round(total, 3), round(total / max(1, len(scores)), 3)])
    rows.sort(key=lambda row: -row[2])
    return Table(["sentence", "nats", "nats a token"], rows)


def nearest(model, sentence, sentences):
    """Returns lines, and their cosines with a sentence, the nearest line first."""
    lines = _lines(sentences)
    vectors = scoring.embed_texts(model, [sentence, *lines])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = np.round(vectors[1:] @ vectors[0], 3).tolist()
    rows = sorted(zip(lines, cosines, strict=True), key=lambda row: -row[1])
    return Table(["sentence", "cosine"], list(map(list, rows)))


def answered(answering, *texts):
    """Returns a model's answer: its lists side by side, or a row for each value.

    An empty text that the model does not need is no input.
    """
    values = list(texts[: answering.needed])
    values += [text for text in texts[answering.needed :] if text]
    (answer,) = answering.answer([answering.example(values)])
    lists = {name: value for name, value in answer.items() if isinstance(value, list)}
    if len(lists) > 1:
        rows = zip(*lists.values(), strict=True)
        return Table(list(lists), list(map(list, rows)))
    rows = []
    for name, value in answer.items():
        if isinstance(value, dict):
            rows += [[f"{name}: {key}", entry] for key, entry in value.items()]
        else:
            rows.append([name, ", ".join(map(str, value)) if lists else value])
    return Table(["", "answer"], rows)


def _lines(text):
    """Returns the lines that have a text.

    Raises:
        ValueError: There are none.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise ValueError("Write one sentence or more, each in a line of its own.")
    return lines


def _gives_likelihoods(model):
    try:
        likelihoods.check(model)
    except ValueError:
        return False
    return True
