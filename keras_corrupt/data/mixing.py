"""Streams of examples that are mixed in fixed proportions, and entered anywhere.

In the first n examples of a mixture in which another corpus has the fraction f,
floor(n f) are that corpus's. So how far each stream has got follows from n alone, and
a mixture can go on at any example.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction

import tensorflow as tf

# Positions times this must not pass 2^63.
_LARGEST_DENOMINATOR = 1_000_000

#: Function of the number of examples to leave out that returns the examples after them.
Stream = Callable[[int], tf.data.Dataset]


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


def mixed(stream: Stream, others: Sequence[tuple[Stream, float]], start: int):
    """Mixes streams.

    Args:
        stream: The endless stream that has the rest.
        others: Endless streams, each with its fraction of all examples.
        start: Examples of the mixture to leave out.

    Returns:
        A `tf.data.Dataset`, the same from an example on whatever `start` is.

    Example:
    >>> def count_from(first):
    ...     return lambda start: tf.data.Dataset.range(first + start, first + 100)
    >>> mixture = mixed(count_from(0), [(count_from(50), 0.25)], start=2)
    >>> [int(number) for number in mixture.take(6)]
    [2, 50, 3, 4, 5, 51]
    """
    others = [other for other in others if other[1]]
    if not others:
        return stream(start)
    *rest, (last, share) = others
    share = Fraction(share).limit_denominator(_LARGEST_DENOMINATOR)
    inner = [(other, float(Fraction(part) / (1 - share))) for other, part in rest]
    done = _of_first(start, share)
    choice = tf.data.Dataset.range(start, tf.int64.max).map(
        lambda n: _of_first(n + 1, share) - _of_first(n, share)
    )
    return tf.data.Dataset.choose_from_datasets(
        [mixed(stream, inner, start - done), last(done)], choice
    )


def _of_first(examples, share: Fraction):
    return examples * share.numerator // share.denominator
