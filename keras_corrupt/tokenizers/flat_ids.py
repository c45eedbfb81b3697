"""Token ids of many texts in one array, which costs less than a list for each text."""

import itertools
from collections.abc import Sequence

import numpy as np


def flattened(encoded: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Joins lists of token ids.

    Args:
        encoded: The ids of each text.

    Returns:
        The ids of all texts, int32 [tokens], and how many are each text's, int64
        [texts].

    Example:
    >>> flattened([[7, 8], [], [9]])[1].tolist()
    [2, 0, 1]
    """
    lengths = np.array([len(ids) for ids in encoded], "int64")
    token_ids = itertools.chain.from_iterable(encoded)
    return np.fromiter(token_ids, "int32", lengths.sum()), lengths


def unflattened(token_ids: np.ndarray, lengths: np.ndarray) -> list[list[int]]:
    """Makes the lists again.

    Args:
        token_ids: See `flattened`.
        lengths: See `flattened`.

    Returns:
        The ids of each text.

    Example:
    >>> unflattened(*flattened([[7, 8], [], [9]]))
    [[7, 8], [], [9]]
    """
    ids = token_ids.tolist()
    ends = itertools.accumulate(lengths.tolist(), initial=0)
    return [ids[start:end] for start, end in itertools.pairwise(ends)]
