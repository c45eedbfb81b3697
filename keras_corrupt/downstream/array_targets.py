"""Arrays that `fit` may be given as targets, in the place of what `features` makes."""

import numpy as np
from keras import ops


def class_numbers(targets, labels):
    """Returns what a classifier learns of the targets that `fit` was given.

    Args:
        targets: For each text a label, or where labels are strings its number; or a
            distribution over all labels, `[texts, labels]`. One column is an array,
            too.
        labels: The labels, a list.

    Returns:
        int32 `[texts]`, or float32 `[texts, labels]`.

    Raises:
        ValueError: A target is none of these.

    >>> class_numbers([["good"], ["bad"]], ["bad", "good"]).tolist()
    [1, 0]
    >>> class_numbers([1, 5], labels=[5, 1]).tolist()
    [1, 0]
    """
    array = np.asarray(targets)
    if array.ndim == 2 and array.shape[1] == len(labels) > 1:
        return array.astype("float32")
    are_strings = all(isinstance(label, str) for label in labels)
    names = not are_strings or array.dtype.kind in "OUST"
    array = as_column(array)
    known = labels if names else range(len(labels))
    if unknown := [target for target in array.tolist() if target not in known]:
        places = f", or their numbers, from 0 to {len(labels) - 1}" * are_strings
        raise ValueError(
            f"Targets are labels, of {labels}{places}; got {unknown[0]!r}."
        )
    numbers = [labels.index(name) for name in array.tolist()] if names else array
    return np.asarray(numbers, "int32")


def class_targets(array):
    """Returns the targets of what `class_numbers` returns, or a dataset has instead."""
    if len(array.shape) == 2 and array.shape[1] != 1:
        return {"label": array}
    return {"label": ops.cast(as_column(array), "int32")}


def as_column(array):
    """Returns numbers of rows as `[rows]`: Keras makes `[rows, 1]` of a Series.

    Raises:
        ValueError: A row has several numbers.
    """
    if len(array.shape) == 2 and array.shape[1] == 1:
        return array[:, 0]
    if len(array.shape) != 1:
        raise ValueError(f"Targets are one for each text; got the shape {array.shape}.")
    return array
