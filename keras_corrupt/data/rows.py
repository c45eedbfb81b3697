"""Rows that hold several examples, one after the other, so that little is padding.

A row is a run of neighbouring records of a file: as many as fit, and then the next row
begins. So the file and the rows' length alone decide the rows. An epoch shuffles rows
as it would shuffle examples, each row stands in it once, and the number of a step tells
which rows the step has.
"""

from collections.abc import Sequence

import numpy as np


def row_bounds(lengths: np.ndarray, row_length: int) -> np.ndarray:
    """Divides examples into rows.

    Args:
        lengths: Tokens of each example, in order, int [examples]; none has more than
            `row_length`.
        row_length: Tokens of a row.

    Returns:
        The number of the first example of each row and, last, the number of examples:
        int32 [rows + 1].

    Example:
    >>> row_bounds(np.array([5, 3, 4, 4, 8]), 8)
    array([0, 2, 4, 5], dtype=int32)
    """
    ends = np.cumsum(lengths)
    next_rows = np.searchsorted(ends, ends - lengths + row_length, "right").tolist()
    bounds = [0]
    while bounds[-1] < len(lengths):
        bounds.append(next_rows[bounds[-1]])
    return np.array(bounds, np.int32)


def filled_rows(
    examples: dict[str, np.ndarray], counts: Sequence[int]
) -> dict[str, np.ndarray]:
    """Puts examples into rows.

    Args:
        examples: Padded examples: int32 arrays [examples, length], `padding_mask` among
            them.
        counts: Examples of each row, in order.

    Returns:
        The same arrays, [rows, length], and `text_ids`: the number of a token's example
        in its row, from 1 on, and 0 for padding.

    Example:
    >>> mask = np.array([[1, 1, 0, 0], [1, 0, 0, 0]])
    >>> filled_rows({"token_ids": 7 * mask, "padding_mask": mask}, [2])["text_ids"]
    array([[1, 1, 2, 0]], dtype=int32)
    """
    is_token = examples["padding_mask"] == 1
    lengths = is_token.sum(axis=1)
    rows = np.repeat(np.arange(len(counts)), counts)
    tokens_of_rows = np.bincount(rows, lengths, len(counts)).astype(int)
    filled = np.arange(is_token.shape[1]) < tokens_of_rows[:, None]

    def into_rows(tokens):
        array = np.zeros(filled.shape, np.int32)
        array[filled] = tokens
        return array

    texts = 1 + np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    arrays = {name: into_rows(array[is_token]) for name, array in examples.items()}
    return arrays | {"text_ids": into_rows(np.repeat(texts, lengths))}
