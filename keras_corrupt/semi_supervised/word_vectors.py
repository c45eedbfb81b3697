"""Vectors of words that were trained elsewhere, in GloVe's text format."""

import contextlib
import os

import numpy as np

from keras_corrupt.data.byte_lines import DamagedFileError, byte_lines


def first_words(path, number):
    """Returns the first words that a file has vectors of: GloVe's most frequent ones.

    Those in lower case, as a vocabulary has them.

    Args:
        path: See `read_word_vectors`.
        number: How many, at most.

    Raises:
        ValueError: The file is missing or damaged.
    """
    found = {}
    with errors_that_name(path):
        for line_number, _, line in byte_lines(str(path)):
            word, *numbers = line.rstrip(b"\r ").split(b" ")
            if line_number == 1 and len(numbers) == 1:
                continue
            if len(found) == number:
                break
            word = word.decode("utf-8")
            if word == word.lower():
                found[word] = True
    return [*found]


def read_word_vectors(path, words, size):
    """Reads the vectors of some words.

    Each line of the file is a word and its numbers, separated by spaces; the word may
    hold spaces itself. A first line of two numbers, which word2vec's format has, is
    passed over.

    Args:
        path: The file; `.gz`, `.xz` and `.zst` are decompressed.
        words: The words that are wanted.
        size: Numbers of a vector.

    Returns:
        Dict from those words that the file has to float32 `[size]`. Of a word that it
        has twice, the first vector.

    Raises:
        ValueError: The file is missing or damaged, or its vectors have another width.
    """
    wanted, found, first = set(words), {}, True
    with errors_that_name(path):
        for number, _, line in byte_lines(str(path)):
            fields = line.rstrip(b"\r ").split(b" ")
            if number == 1 and len(fields) == 2:
                continue
            # Later words may hold spaces; the first one does not.
            if len(fields) <= size or first and len(fields) != size + 1:
                raise ValueError(
                    f"line {number} has {len(fields) - 1} numbers, not the {size} that "
                    "the model's words have. Give a file of that width"
                )
            first = False
            word = b" ".join(fields[:-size]).decode("utf-8")
            if word in wanted and word not in found:
                found[word] = np.array(fields[-size:], "float32")
                if not np.isfinite(found[word]).all():
                    raise ValueError(f"line {number} has a number that is not finite")
    if not found:
        raise ValueError(
            f"The word vectors {path} have none of the {len(wanted)} words."
        )
    return found


@contextlib.contextmanager
def errors_that_name(path):
    """Raises what is wrong with a file as a `ValueError` that names it."""
    if not os.path.isfile(path):
        raise ValueError(f"The word vectors {path} are not a file.")
    try:
        yield
    except (ValueError, DamagedFileError, OSError) as error:
        raise ValueError(f"The word vectors {path}: {error}.") from error
