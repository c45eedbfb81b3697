"""Corrections of where tokens stand in a text."""

import unicodedata

import numpy as np


def leave_out_space(offsets: np.ndarray, text: str) -> None:
    """Takes white space from both ends of tokens.

    Args:
        offsets: Start and end character of each token, int32 [tokens, 2]; changed in
            place. A token of white space ends where it starts, behind the space.
        text: The text.

    Example:
    >>> offsets = np.array([[0, 3], [3, 7], [7, 8]])
    >>> leave_out_space(offsets, "the cat ")
    >>> offsets.tolist()
    [[0, 3], [4, 7], [8, 8]]
    """
    visible = np.array([not character.isspace() for character in text], bool)
    place = np.arange(len(text) + 1)
    # From each place, where the next visible character is and where the last one ends.
    following = np.where(np.append(visible, True), place, len(text))
    following = np.minimum.accumulate(following[::-1])[::-1]
    preceding = np.maximum.accumulate(np.where(np.append(True, visible), place, 0))
    offsets[:, 0] = following[offsets[:, 0]]
    offsets[:, 1] = np.maximum(preceding[offsets[:, 1]], offsets[:, 0])


def add_marks(offsets: np.ndarray, text: str) -> None:
    """Moves the end of each token behind the combining marks that follow it.

    Args:
        offsets: Start and end character of each token, int32 [tokens, 2]; changed in
            place, at most to where the next token starts.
        text: The text.

    Example:
    >>> offsets = np.array([[0, 1], [2, 3]])
    >>> add_marks(offsets, "e\u0301a")
    >>> offsets.tolist()
    [[0, 2], [2, 3]]
    """
    marks = [unicodedata.category(character) == "Mn" for character in text]
    limits = [*offsets[1:, 0], len(text)]  # one too many without tokens
    for token, limit in zip(offsets, limits, strict=False):
        while token[1] < limit and marks[token[1]]:
            token[1] += 1
