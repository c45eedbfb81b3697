"""How a model answers the rows of a file, whatever its kind."""

import dataclasses
from collections.abc import Callable

from keras_corrupt.tokenizers.texts import check_text, check_words


@dataclasses.dataclass(frozen=True)
class Answering:
    """The inputs that a model reads from a row, and the answer that it writes.

    Attributes:
        columns: The names of its inputs, in the order in which an example has them.
        answer: Function of a list of raw examples and of the number of sequences to
            read at once. Returns a dict for each example, of values that JSON has.
        needed: How many of the columns every row must have; all if not given.
        in_words: Whether the input is a list of words. A text is divided at its spaces.
        group: Function of an example, if answers depend on each other. Examples with
            the same result that follow each other have to be answered together.

    Example:

    >>> Answering(("text", "second_text"), answer=None).example(["It rains.", "Rain?"])
    ('It rains.', 'Rain?')
    """

    columns: tuple[str, ...]
    answer: Callable
    needed: int | None = None
    in_words: bool = False
    group: Callable | None = None

    def __post_init__(self):
        if self.needed is None:
            object.__setattr__(self, "needed", len(self.columns))

    def example(self, cells):
        """Returns a raw example.

        Args:
            cells: The values of the first columns, at least of the needed columns.

        Raises:
            ValueError: A value is no text, nor a list of words where these are read.
        """
        if self.in_words:
            (words,) = cells
            words = words.split() if isinstance(words, str) else words
            check_words(words, self.columns[0])
            return words
        for name, cell in zip(self.columns, cells, strict=False):
            check_text(cell, name)
        return cells[0] if len(cells) == 1 else tuple(cells)


def no_task(model, task):
    """Raises a `ValueError` if a task is asked of a model that has one task."""
    if task is not None:
        raise ValueError(
            f"The task {task!r} is named, but this {type(model).__name__} does one "
            "task alone: name none."
        )


def labelled(predictions, labels, probabilities):
    """Returns a dict for each predicted label, with its and all labels' probabilities.

    >>> import numpy as np
    >>> labelled(["no"], ["yes", "no"], np.array([[0.25, 0.75]]))
    [{'label': 'no', 'probability': 0.75, 'probabilities': {'yes': 0.25, 'no': 0.75}}]
    """
    return [
        {
            "label": prediction,
            "probability": float(row.max()),
            "probabilities": dict(zip(labels, row.tolist(), strict=True)),
        }
        for prediction, row in zip(predictions, probabilities, strict=True)
    ]
