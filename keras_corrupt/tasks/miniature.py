"""Benchmarks in miniature, in their own files: `--smoke` fine-tunes on them."""

import json
from pathlib import Path

from keras_corrupt.tasks.glue import TASKS

#: The numbers of each split's examples.
SPLITS = {"train": range(16), "dev": range(16, 32)}
NOUNS = ("cat", "dog", "captain", "child")
PLACES = ("mat", "ship", "hill", "road", "house")


def sentence(number):
    """Returns a sentence of a noun and a place.

    >>> sentence(0), sentence(6)
    ('The cat sat on the mat.', 'The captain sat on the ship.')
    """
    return f"The {noun(number)} sat on the {place(number)}."


def noun(number):
    """Returns the noun of a sentence, which decides the sentence's label."""
    return NOUNS[number % len(NOUNS)]


def place(number):
    """Returns the place of a sentence."""
    return PLACES[number % len(PLACES)]


def glue(folder):
    """Writes GLUE's training and development files into a folder.

    Returns:
        The fields of a recipe that name the files, with their values.
    """
    for name, table in TASKS.items():
        for split, numbers in SPLITS.items():
            rows = [_glue_row(name, table, number) for number in numbers]
            if name != "CoLA":  # the only files without a header
                rows.insert(0, [*table.texts, table.label])
            _write_rows(Path(folder) / name / f"{split}.tsv", rows)
    return {"data": str(folder)}


def _glue_row(name, table, number):
    labels = table.labels or ("0", "2.5", "5")
    label = labels[number % len(NOUNS) % len(labels)]
    first = sentence(number)
    if name == "CoLA":
        return "-", label, "-", first
    if name == "WNLI":  # the second sentence says what "it" is
        candidate = (place(number), noun(number))[int(label)]
        return f"{first[:-1]} and it was old.", f"The {candidate} was old.", label
    return first, *[sentence(number + 1)] * (len(table.texts) - 1), label


def squad(folder):
    """Writes the files of SQuAD 1.1 and 2.0, and returns as `glue` does.

    In version 2.0 every other question has no answer.
    """
    for version in ("1.1", "2.0"):
        for split, numbers in SPLITS.items():
            questions = []
            for number in numbers:
                answers = [{"text": noun(number), "answer_start": len("The ")}]
                if version == "2.0" and number % 2:
                    answers = []
                question = f"Who sat on the {PLACES[(number + len(answers) - 1) % 5]}?"
                questions.append(
                    {
                        "context": sentence(number),
                        "qas": [
                            {
                                "id": str(number),
                                "question": question,
                                "answers": answers,
                                "is_impossible": not answers,
                            }
                        ],
                    }
                )
            content = {"data": [{"title": "sentences", "paragraphs": questions}]}
            path = Path(folder) / f"{split}-v{version}.json"
            path.write_text(json.dumps(content), encoding="utf-8")
    return {"data": str(folder)}


def tagging(folder):
    """Writes CoNLL's columns, in which nouns are entities; returns as `glue` does."""
    for split, numbers in SPLITS.items():
        rows = []
        for number in numbers:
            for word in sentence(number)[:-1].split():
                rows.append((word, "B-NOUN" if word in NOUNS else "O"))
            rows.append(())
        _write_rows(Path(folder) / f"{split}.txt", rows)
    return {split: str(Path(folder) / f"{split}.txt") for split in SPLITS}


def text(folder):
    """Writes a table of a text and a label; returns as `glue` does."""
    rows = [(sentence(n), noun(n)) for numbers in SPLITS.values() for n in numbers]
    path = Path(folder) / "train.tsv"
    _write_rows(path, [("text", "label"), *rows])
    return {"train": str(path)}


def pairs(folder):
    """Writes a table of sentences that say the same; returns as `glue` does."""
    rows = [
        (sentence(n), f"On the {place(n)} sat the {noun(n)}.")
        for numbers in SPLITS.values()
        for n in numbers
    ]
    path = Path(folder) / "train.tsv"
    _write_rows(path, [("text", "second_text"), *rows])
    return {"train": str(path)}


def _write_rows(path, rows):
    path.parent.mkdir(exist_ok=True)
    lines = ("\t".join(row) + "\n" for row in rows)
    path.write_text("".join(lines), encoding="utf-8")
