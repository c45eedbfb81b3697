"""Teacher annealing: from the teacher to the labels (Clark's thesis, 3.2.2).

A student learns from `w * label + (1 - w) * teacher`, where w, lambda in the thesis,
rises linearly from 0 in the first update to 1 in the last one.
"""


def gold_weight(step, steps, constant=None):
    """Returns the labels' share in an update.

    Args:
        step: The update, from 0.
        steps: How many there are.
        constant: The share in all of them, for the thesis's ablations (0 and 0.5);
            `None` to anneal.

    >>> [gold_weight(step, 5) for step in range(5)]
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    if constant is not None:
        return constant
    return step / max(steps - 1, 1)
