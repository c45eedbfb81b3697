"""Vectors of words that were trained elsewhere, in GloVe's text format."""

import contextlib
import os
import warnings

import numpy as np

from keras_corrupt.cross_view.text.vocabulary import form_of
from keras_corrupt.files.text import byte_lines


def first_words(path, number, size):
    """Returns the forms of the first words of a file: in GloVe's, the most frequent.

    There are `number` at most; see `read_word_vectors` for the file and its errors.
    """
    forms = {}
    with errors_naming(path):
        for _, form, _ in entries(path, size):
            if len(forms) == number:
                break
            forms[form] = True
    return [*forms]


def read_word_vectors(path, words, size):
    """Reads the vectors of some words.

    Each line of the file is a word and its numbers, separated by spaces; the word may
    hold spaces itself. A first line of two numbers, which word2vec's format has, is
    passed over.

    Args:
        path: The file; see `byte_lines`.
        words: The forms that are wanted: see `form_of`.
        size: Numbers of a vector.

    Returns:
        Dict from those forms that the file has to float32 `[size]`, of several words of
        a form the first one's.

    Raises:
        ValueError: The file is missing or damaged, or its vectors have another width.
    """
    forms, vectors = set(words), {}
    with errors_naming(path):
        for line, form, numbers in entries(path, size):
            if form in forms and form not in vectors:
                try:
                    vectors[form] = np.array(numbers, "float32")
                except ValueError as error:
                    raise ValueError(f"line {line}: {error}") from error
                if not np.isfinite(vectors[form]).all():
                    raise ValueError(f"line {line} has a number that is not finite")
    if not vectors:
        raise ValueError(
            f"The word vectors {path} have none of the {len(forms)} words."
        )
    return vectors


def entries(path, size):
    """Yields each vector's line, word as its form, and numbers as they are written.

    Words that are not UTF-8, which nothing can ask for, are left out with a warning;
    so are empty lines, without one.
    """
    first, wrong = True, []
    for line, _, text in byte_lines(path):
        fields = text.rstrip(b" ").split(b" ")
        if not text.strip() or (line == 1 and len(fields) == 2):
            continue
        # Later words may hold spaces; the first one does not.
        if len(fields) <= size or first and len(fields) != size + 1:
            raise ValueError(
                f"line {line} has {len(fields) - 1} numbers, not the {size} that the "
                "model's words have. Give a file of that width"
            )
        first = False
        try:
            word = b" ".join(fields[:-size]).decode("utf-8")
        except UnicodeDecodeError:
            wrong.append(line)
        else:
            yield line, form_of(word), fields[-size:]
    if wrong:
        warnings.warn(
            f"{path}: {len(wrong):,} words are not UTF-8 (the first in line "
            f"{wrong[0]}) and are left out.",
            stacklevel=2,
        )


@contextlib.contextmanager
def errors_naming(path):
    """Raises a file's faults as a `ValueError` that names it."""
    if not os.path.isfile(path):
        raise ValueError(f"The word vectors {path} are not a file.")
    try:
        yield
    except (ValueError, OSError) as error:
        raise ValueError(f"The word vectors {path}: {error}.") from error
