"""How good predictions are, in percent, and the guesses that a model must beat.

Every metric takes predictions and labels, one for each example. Where one is not
defined, as a correlation with predictions that are all the same, it is 0. SciPy and
scikit-learn take seconds to load, so that each metric imports what it needs.
"""

import warnings
from collections import Counter

import numpy as np


def accuracy(predictions, labels):
    """Returns the percentage of predictions that are right.

    >>> accuracy(["a", "b", "b", "b"], ["a", "a", "b", "b"])
    75.0
    """
    _check(predictions, labels)
    right = [p == label for p, label in zip(predictions, labels, strict=True)]
    return 100 * float(np.mean(right))


def f1(predictions, labels, positive="1"):
    """Returns the F1 score of one class, by default of GLUE's `"1"`.

    >>> f1(["1", "1", "0", "0"], ["1", "0", "1", "1"])
    40.0
    """
    from sklearn.metrics import f1_score

    _check(predictions, labels)
    score = f1_score(
        [label == positive for label in labels],
        [prediction == positive for prediction in predictions],
        zero_division=0,
    )
    return 100 * float(score)


def macro_f1(predictions, labels):
    """Returns the mean of the F1 scores of all classes.

    A class that is predicted counts with the score 0 where no example has it, as in
    scikit-learn and in the released code of Gururangan et al. (2020), from whom
    Zheng et al. (2020) take the tasks that have this metric.

    >>> round(macro_f1(["a", "a", "c", "b"], ["a", "a", "b", "b"]), 1)
    55.6
    """
    from sklearn.metrics import f1_score

    _check(predictions, labels)
    score = f1_score(labels, predictions, average="macro", zero_division=0)
    return 100 * float(score)


def matthews(predictions, labels):
    """Returns Matthews's correlation coefficient.

    >>> matthews(["1", "1", "1"], ["1", "0", "1"])
    0.0
    """
    from sklearn.metrics import matthews_corrcoef

    _check(predictions, labels)
    if len(set(predictions)) == 1 or len(set(labels)) == 1:
        return 0.0
    return 100 * float(matthews_corrcoef(labels, predictions))


def auc(predictions, labels):
    """Returns how often a pair with the label 1 gets more than one with the label 0.

    >>> auc([0.9, 0.4, 0.5, 0.1], [1, 1, 0, 0])
    75.0
    """
    from sklearn.metrics import roc_auc_score

    _check(predictions, labels)
    if len(set(labels)) == 1:
        return 0.0
    return 100 * float(roc_auc_score(labels, predictions))


def pearson(predictions, labels):
    """Returns Pearson's correlation of two lists of numbers."""
    from scipy.stats import pearsonr

    return _correlation(pearsonr, predictions, labels)


def spearman(predictions, labels):
    """Returns Spearman's rank correlation of two lists of numbers.

    >>> spearman([1, 2, 10], [0.1, 0.2, 0.3])
    100.0
    """
    from scipy.stats import spearmanr

    return _correlation(spearmanr, predictions, labels)


METRICS = {
    function.__name__: function
    for function in (accuracy, auc, f1, macro_f1, matthews, pearson, spearman)
}


def majority_label(labels):
    """Returns the most frequent label; of equally frequent ones the first in order."""
    return min(Counter(labels).items(), key=lambda item: (-item[1], item[0]))[0]


def mean_score(scores):
    """Returns the mean, the best guess of a score by squared error."""
    return float(np.mean(scores))


def _correlation(correlation, predictions, labels):
    _check(predictions, labels)
    if np.ptp(predictions) == 0 or np.ptp(labels) == 0:
        return 0.0
    with warnings.catch_warnings():
        # Scores that differ in their last digits only: the value still holds.
        warnings.simplefilter("ignore", RuntimeWarning)
        value = correlation(predictions, labels).statistic
    return float(np.clip(100 * np.nan_to_num(value), -100, 100))


def _check(predictions, labels):
    if len(predictions) != len(labels) or not len(labels):
        raise ValueError(
            "There must be one prediction for each label, and at least one; got "
            f"{len(predictions)} predictions and {len(labels)} labels."
        )
