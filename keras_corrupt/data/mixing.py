"""Examples of several corpora, mixed in fixed proportions.

A corpus that is mixed in with the fraction f has floor(n f) of the first n examples. So
the number of an example alone decides which corpus the example comes from.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

# Numbers of examples times this must not pass 2^63.
_LARGEST_DENOMINATOR = 1_000_000


def check_fractions(fractions: Sequence[float]) -> None:
    """Checks the fractions of mixed corpora.

    Args:
        fractions: The share of all examples that each corpus has.

    Raises:
        ValueError: If one is negative or no number, or nothing is left.
    """
    wrong = [fraction for fraction in fractions if not 0 <= fraction < 1]
    if wrong or sum(fractions) >= 1:
        raise ValueError(
            f"--mix has the fractions {', '.join(map(str, fractions))}: each must be "
            "from 0 to less than 1, and so must their sum; the rest is the corpus's."
        )


def mixed(
    numbers: np.ndarray, fractions: Sequence[float]
) -> tuple[np.ndarray, np.ndarray]:
    """Tells which examples a mixture has.

    Args:
        numbers: Examples of the mixture by number, int64 [examples].
        fractions: The fraction of all examples that each mixed-in corpus has.

    Returns:
        The corpus of each, 0 for the one that has the rest; and the number that the
        example has among the corpus's own. Both int64 [examples].

    Example:
    >>> mixed(np.arange(2, 8), [0.25])
    (array([0, 1, 0, 0, 0, 1]), array([2, 0, 3, 4, 5, 1]))
    """
    if not fractions:
        return np.zeros_like(numbers), numbers
    *rest, last = fractions
    share = Fraction(last).limit_denominator(_LARGEST_DENOMINATOR)
    done, then = (
        n * share.numerator // share.denominator for n in (numbers, numbers + 1)
    )
    inner = [float(Fraction(part) / (1 - share)) for part in rest]
    corpus, number = mixed(numbers - done, inner)
    is_last = then > done
    return np.where(is_last, len(fractions), corpus), np.where(is_last, done, number)
