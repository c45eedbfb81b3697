import warnings
from math import sqrt

import numpy as np
import pytest

from keras_corrupt.tasks import metrics

# 3 true positives, 1 false positive, 2 false negatives, 4 true negatives.
LABELS = list("1110110000")
PREDICTIONS = list("1111000000")


def test_classification_by_hand():
    assert metrics.accuracy(PREDICTIONS, LABELS) == pytest.approx(70)
    assert metrics.f1(PREDICTIONS, LABELS) == pytest.approx(100 * 2 * 3 / (2 * 3 + 3))
    assert metrics.f1(PREDICTIONS, LABELS, "0") == pytest.approx(100 * 8 / (8 + 3))
    assert metrics.macro_f1(PREDICTIONS, LABELS) == pytest.approx(
        100 * (6 / 9 + 8 / 11) / 2
    )
    # F1 is 2/3 of "a" and "c", and 0 of "b", which is no prediction, and "d", no label.
    assert metrics.macro_f1([*"adcc"], [*"aacb"]) == pytest.approx(
        100 * (2 / 3 + 2 / 3) / 4
    )
    expected = (3 * 4 - 1 * 2) / sqrt((3 + 1) * (3 + 2) * (4 + 1) * (4 + 2))
    assert metrics.matthews(PREDICTIONS, LABELS) == pytest.approx(100 * expected)
    # The other way round it is wrong, and not only unlucky.
    flipped = ["10"[int(p)] for p in LABELS]
    assert metrics.matthews(flipped, LABELS) == pytest.approx(-100)


def test_correlations_by_hand():
    labels, predictions = np.array([1.0, 2, 3, 5]), np.array([1.0, 4, 2, 100])
    a, b = labels - labels.mean(), predictions - predictions.mean()
    expected = 100 * (a @ b) / sqrt((a @ a) * (b @ b))
    assert metrics.pearson(predictions, labels) == pytest.approx(expected)
    # Ranks 1 3 2 4 against 1 2 3 4: 1 - 6 (0 + 1 + 1 + 0) / (4 * 15).
    assert metrics.spearman(predictions, labels) == pytest.approx(80)
    # Equal values share their mean rank: 1.5 1.5 3 against 1 2 3.
    assert metrics.spearman([7, 7, 9], [1, 2, 3]) == pytest.approx(100 * sqrt(3) / 2)


@pytest.mark.parametrize("name", metrics.METRICS)
def test_constant_predictions_give_a_number_and_no_warning(name):
    metric = metrics.METRICS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if name in ("pearson", "spearman"):
            assert metric([2.5, 2.5, 2.5], [0.0, 1, 5]) == 0
            assert metric([0.0, 1, 5], [2.5, 2.5, 2.5]) == 0
            assert metric([2.5], [1.0]) == 0
            assert metric([np.nan, 1, 2], [0.0, 1, 5]) == 0
            nearly = [1.0, 1 + 2e-16, 1 + 4e-16]
            assert -100 <= metric(nearly, [0.0, 1, 5]) <= 100
        elif name == "auc":
            assert metric([0.5, 0.5], [0, 1]) == 50
            assert metric([0.5, 0.5], [1, 1]) == 0
        else:
            wrong = {"accuracy": 0, "f1": 0, "macro_f1": 0, "matthews": 0}
            assert metric(["0", "0"], ["1", "1"]) == wrong[name]
            half = {"accuracy": 50, "f1": 0, "macro_f1": 100 / 3, "matthews": 0}
            assert metric(["0", "0"], ["0", "1"]) == pytest.approx(half[name])
            all_right = {"accuracy": 100, "f1": 0, "macro_f1": 100, "matthews": 0}
            assert metric(["0", "0"], ["0", "0"]) == all_right[name]


@pytest.mark.parametrize("name", metrics.METRICS)
def test_counts_must_match(name):
    with pytest.raises(ValueError, match="2 predictions and 3 labels"):
        metrics.METRICS[name](["0", "1"], ["0", "1", "1"])
    with pytest.raises(ValueError, match="0 predictions"):
        metrics.METRICS[name]([], [])


def test_guesses():
    assert metrics.majority_label(["b", "a", "b"]) == "b"
    assert metrics.majority_label(["b", "a", "a", "b"]) == "a"
    assert metrics.mean_score([1, 2, 6]) == 3
