"""The best tree of a sentence, by the Chu-Liu-Edmonds algorithm of a library."""

import numpy as np


def spanning_tree_algorithm():
    """Returns the library's function of a matrix of scores.

    Raises:
        ImportError: The library is not installed.
    """
    try:
        from ufal.chu_liu_edmonds import chu_liu_edmonds
    except ImportError as error:
        raise ImportError(
            "Parsing needs ufal.chu_liu_edmonds: pip install -e '.[parsing]'."
        ) from error
    return chu_liu_edmonds


def best_heads(scores):
    """Returns the heads of the tree with the greatest sum of scores.

    One word alone depends on the root.

    Args:
        scores: `[words, words + 1]`: for each word the score of each head, the root
            and then the words in their order. Nothing reads a word's score with itself.

    Returns:
        A list of ints, 0 for the root, or words counted from 1.

    Raises:
        ImportError: The library is not installed.
        ValueError: A score is not finite.

    >>> best_heads(np.array([[5, 0, 9, 0], [6, 9, 0, 0], [7, 1, 2, 0]]))
    [2, 0, 2]
    """
    find_tree = spanning_tree_algorithm()
    if not len(scores):
        return []
    if not np.isfinite(scores).all():
        raise ValueError("`scores` has NaN or infinity: the model is not usable.")
    words = len(scores)
    matrix = np.full((words + 1, words + 1), np.nan)  # no edge
    matrix[1:] = scores
    # Each edge from the root costs more than trees can differ by, so there is one.
    matrix[1:, 0] -= words * np.ptp(scores) + 1.0
    np.fill_diagonal(matrix, np.nan)
    heads, _ = find_tree(matrix)
    return heads[1:]
