"""Which sequences a pass of multi-task training reads (Clark's thesis, 3.3).

The probability that a row of a batch is of a task is proportional to `size **
exponent`, 0.75 in the thesis. A task's own sequences come in a new order each time all
of them have been read, so that none is read twice before another one is read once.
"""

import numpy as np

#: Bowman et al. (2018), whom the thesis follows.
EXPONENT = 0.75


def shares(sizes, exponent=EXPONENT):
    """Returns the probability of each task.

    Args:
        sizes: Training sequences of each.
        exponent: 1 for tasks as large as they are, 0 for all alike.

    >>> shares([16, 81], 0.5).round(3).tolist()
    [0.308, 0.692]
    """
    powers = np.asarray(sizes, "float64") ** exponent
    return powers / powers.sum()


def rows_of_pass(sizes, exponent, seed, number):
    """Returns the rows of a pass, as many as there are sequences.

    They depend on nothing but the arguments, so that a run can go on at any pass.

    Args:
        sizes: Sequences of each task.
        exponent: See `shares`.
        seed: The run's.
        number: Which pass, from 0.

    Returns:
        Indices into the sequences of all tasks, task after task, in rising order. A
        single task has all of its own.
    """
    sizes, p = np.asarray(sizes), shares(sizes, exponent)
    counts = [
        np.random.default_rng((seed, k, 0)).multinomial(sizes.sum(), p)
        for k in range(number + 1)
    ]
    already_read = np.sum(counts[:-1], axis=0, dtype=int) * np.ones_like(sizes)
    firsts = np.cumsum(sizes) - sizes
    return np.concatenate(
        [
            first + _next_of(size, done, count, (seed, task))
            for task, (size, first, done, count) in enumerate(
                zip(sizes, firsts, already_read, counts[-1], strict=True)
            )
        ]
    )


def _next_of(size, done, count, seed):
    """Returns which `count` of a task's sequences come after `done` of them."""
    rounds = range(done // size, -(-(done + count) // size))
    orders = [np.random.default_rng((*seed, k, 1)).permutation(size) for k in rounds]
    orders = np.concatenate([np.empty(0, int), *orders])
    return np.sort(orders[done % size :][:count])
