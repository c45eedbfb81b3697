"""Cross-View Training's objective (Clark's thesis, 4.1.1).

    L_sup = mean over labelled words    CE(y, p(y | x))
    L_CVT = mean over unlabelled words  sum over modules j  KL(p(y | x) || p^j(y | x))

p is what the primary prediction module makes of the whole input. On unlabelled words it
is a constant, computed without dropout. p^j is what an auxiliary module makes of its
restricted view. Both losses have the same weight, and batches of the two alternate.
"""

import math

from keras import ops

from keras_corrupt.objectives.loss import weighted_mean


def smoothed(labels, num_classes, smoothing):
    """Returns target distributions of known labels.

    Args:
        labels: Int `[...]`, the classes; one that is negative has no class.
        num_classes: Number of classes.
        smoothing: What all classes share of the probability (Szegedy et al., 2016).

    Returns:
        float32 `[..., num_classes]`.

    >>> import numpy as np
    >>> np.round(smoothed(np.array([1]), 4, 0.1), 3)
    array([[0.025, 0.925, 0.025, 0.025]], dtype=float32)
    """
    targets = ops.one_hot(labels, num_classes, dtype="float32")
    return targets * (1.0 - smoothing) + smoothing / ops.cast(num_classes, "float32")


def supervised_loss(logits, labels, words, smoothing=0.1):
    """The cross-entropy of the primary module, mean over words.

    Args:
        logits: `[batch, length, classes]`, of the primary module with dropout.
        labels: Int `[batch, length]`.
        words: `[batch, length]`, 1 for words with a label, 0 for everything else.
        smoothing: See `smoothed`.

    Returns:
        float32 scalar; 0 where no word has a label.
    """
    targets = smoothed(labels, ops.shape(logits)[-1], smoothing)
    return weighted_mean(cross_entropy(targets, logits), words)


def cross_view_loss(targets, logits, words):
    """The KL divergence of the primary module from each auxiliary one, added up.

    Args:
        targets: `[batch, length, classes]`, the primary module's probabilities without
            dropout. No gradient flows into them.
        logits: The auxiliary modules' logits, a list of `[batch, length, classes]`.
        words: `[batch, length]`, 1 for unlabelled words, 0 for everything else.

    Returns:
        float32 scalar, mean over words; 0 where there is none.
    """
    targets = ops.stop_gradient(ops.cast(targets, "float32"))
    entropy = -ops.sum(targets * ops.log(ops.maximum(targets, 1e-20)), axis=-1)
    divergences = [cross_entropy(targets, each) - entropy for each in logits]
    return weighted_mean(sum(divergences), words)


def hard_divergence(labels, logits, smoothing):
    """The KL divergence of smoothed hard targets from a module.

    Args:
        labels: Int `[...]`, the classes.
        logits: The module's logits, `[..., classes]`.
        smoothing: See `smoothed`, whose distributions these are.

    Returns:
        float32 `[...]`.
    """
    num_classes = logits.shape[-1]
    log_p = ops.log_softmax(ops.cast(logits, "float32"), axis=-1)
    of_label = ops.take_along_axis(log_p, labels[..., None], axis=-1)[..., 0]
    other = smoothing / num_classes
    label = 1.0 - smoothing + other
    entropy = -label * math.log(label)
    if smoothing:
        entropy -= (num_classes - 1) * other * math.log(other)
    crossed = (1.0 - smoothing) * of_label + other * ops.sum(log_p, axis=-1)
    return -crossed - entropy


def cross_entropy(targets, logits):
    """Returns the cross-entropy of distributions `[..., classes]`, float32 `[...]`."""
    logits = ops.cast(logits, "float32")
    return -ops.sum(targets * ops.log_softmax(logits, axis=-1), axis=-1)
