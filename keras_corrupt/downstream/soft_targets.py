"""Targets that are distributions: what a teacher puts out, alone or mixed with labels.

A model's `sequence_losses` take them in the place of its labels, under the same names:
Clark's thesis, 3.2.2.
"""

import numpy as np
from keras import ops


def cross_entropy(target, logits):
    """Returns the cross-entropy with classes, or with distributions over them.

    Args:
        target: Classes, int `[...]`, or their probabilities, float `[..., classes]`.
        logits: Float `[..., classes]`.

    Returns:
        Float `[...]`.
    """
    if len(target.shape) < len(logits.shape):
        return ops.sparse_categorical_crossentropy(target, logits, from_logits=True)
    return -ops.sum(target * ops.log_softmax(logits), axis=-1)


def mixed(label, teacher, gold_weight):
    """Mixes labels with a teacher's outputs: `w * label + (1 - w) * teacher`.

    Args:
        label: Classes, int `[...]`, or numbers.
        teacher: Probabilities of the classes, float `[..., classes]`, or numbers of the
            same shape as the labels.
        gold_weight: The labels' share, from 0 to 1: lambda in the thesis.

    >>> mixed(np.array([0, 1]), np.array([[0.5, 0.5], [0.5, 0.5]]), 0.5).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    label, teacher = np.asarray(label), np.asarray(teacher)
    if label.ndim < teacher.ndim:
        label = label[..., None] == np.arange(teacher.shape[-1])
    return (gold_weight * label + (1 - gold_weight) * teacher).astype("float32")
