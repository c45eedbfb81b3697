"""Token ids of texts and pairs as the arrays that models read."""

from collections.abc import Sequence

import numpy as np


def joined(
    segments: Sequence[Sequence[int]], classify_id: int, separate_id: int
) -> tuple[list[int], list[int]]:
    """Joins a text, or a pair of texts, with the special tokens around them.

    Args:
        segments: The token ids of each text.
        classify_id: The id of `[CLS]`.
        separate_id: The id of `[SEP]`.

    Returns:
        The ids of all, and the number of the segment that each is in.

    >>> joined([[7], [8, 9]], 2, 3)
    ([2, 7, 3, 8, 9, 3], [0, 0, 0, 1, 1, 1])
    """
    token_ids, segment_ids = [classify_id], [0]
    for number, segment in enumerate(segments):
        token_ids += [*segment, separate_id]
        segment_ids += [number] * (len(segment) + 1)
    return token_ids, segment_ids


def padded(
    rows: Sequence[tuple[Sequence[int], Sequence[int]]],
    padding_id: int,
    length: int | None = None,
) -> dict[str, np.ndarray]:
    """Makes arrays of what `joined` returned for some texts.

    Args:
        rows: The ids and the segments of each text.
        padding_id: What follows a text that is shorter than the row.
        length: Tokens of a row; as many as the longest text has if not given.

    Returns:
        See `Tokenizer.pack`.
    """
    shape = len(rows), length or max(len(token_ids) for token_ids, _ in rows)
    packed = {
        "token_ids": np.full(shape, padding_id, "int32"),
        "segment_ids": np.zeros(shape, "int32"),
        "padding_mask": np.zeros(shape, "int32"),
    }
    for row, (token_ids, segment_ids) in enumerate(rows):
        packed["token_ids"][row, : len(token_ids)] = token_ids
        packed["segment_ids"][row, : len(token_ids)] = segment_ids
        packed["padding_mask"][row, : len(token_ids)] = 1
    return packed
