"""Vectors of words that were trained elsewhere, in GloVe's text format."""

import contextlib
import os

import numpy as np

from keras_corrupt.data.byte_lines import DamagedFileError, byte_lines
from keras_corrupt.semi_supervised.vocabulary import form_of


def first_words(path, number):
    """Returns the forms of the first words of a file: in GloVe's, the most frequent.

    A word ends at its first space here.

    Args:
        path: See `read_word_vectors`.
        number: How many, at most.

    Raises:
        ValueError: The file is missing or damaged.
    """
    found = {}
    with errors_naming(path):
        for _, (word, *_) in fields_of(path):
            if len(found) == number:
                break
            found[form_of(word.decode("utf-8"))] = True
    return [*found]


def read_word_vectors(path, words, size):
    """Reads the vectors of some words.

    Each line of the file is a word and its numbers, separated by spaces; the word may
    hold spaces itself. A first line of two numbers, which word2vec's format has, is
    passed over.

    Args:
        path: The file; `.gz`, `.xz` and `.zst` are decompressed.
        words: The forms that are wanted: see `form_of`.
        size: Numbers of a vector.

    Returns:
        Dict from those forms that the file has to float32 `[size]`, of several words of
        a form the first one's.

    Raises:
        ValueError: The file is missing or damaged, or its vectors have another width.
    """
    wanted, found, first = set(words), {}, True
    with errors_naming(path):
        for number, fields in fields_of(path):
            # Later words may hold spaces; the first one does not.
            if len(fields) <= size or first and len(fields) != size + 1:
                raise ValueError(
                    f"line {number} has {len(fields) - 1} numbers, not the {size} that "
                    "the model's words have. Give a file of that width"
                )
            first = False
            word = form_of(b" ".join(fields[:-size]).decode("utf-8"))
            if word in wanted and word not in found:
                found[word] = np.array(fields[-size:], "float32")
                if not np.isfinite(found[word]).all():
                    raise ValueError(f"line {number} has a number that is not finite")
    if not found:
        raise ValueError(
            f"The word vectors {path} have none of the {len(wanted)} words."
        )
    return found


def fields_of(path):
    """Yields the number and the fields of each line that has a vector."""
    for number, _, line in byte_lines(str(path)):
        fields = line.rstrip(b"\r ").split(b" ")
        if number > 1 or len(fields) != 2:
            yield number, fields


@contextlib.contextmanager
def errors_naming(path):
    """Raises what is wrong with a file as a `ValueError` that names it."""
    if not os.path.isfile(path):
        raise ValueError(f"The word vectors {path} are not a file.")
    try:
        yield
    except (ValueError, DamagedFileError, OSError) as error:
        raise ValueError(f"The word vectors {path}: {error}.") from error
