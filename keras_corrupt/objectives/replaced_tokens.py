"""Replaced token detection (Clark's thesis, 5.1.5 and algorithm 2).

    L_RTD = mean over tokens t of
            -1[x~_t = x_t] log(1 - D(x~)_t) - 1[x~_t != x_t] log D(x~)_t
    L     = L_MLM + 50 L_RTD

x is the text, x~ the text with the generator's samples, and D(x~)_t the probability
that position t was replaced. Where the generator happens to sample the original
token, the position counts as original. The thesis does not give the weight 50; it is
the released code's.
"""

from typing import NamedTuple

import keras
from keras import ops

from keras_corrupt.objectives.objective import Objective

#: Enough to tell logits apart that differ by hundredths, as all do at first.
AUC_THRESHOLDS = 4096


class Detections(NamedTuple):
    """What a discriminator says of each token.

    Attributes:
        logits: float32 `[batch, length]`, of "this token was replaced".
        replaced: float32 `[batch, length]`, 1 where it was.
        weights: `[batch, length]`, 0 for padding, else 1.
    """

    logits: object
    replaced: object
    weights: object


class ReplacedTokens(Objective):
    """Tells replaced tokens from original ones.

    It reads the `Corrupted` `outputs["corrupted"]` and the `Detections`
    `outputs["rtd"]`; and `outputs["rtd_learned"]`, `[batch, length]`, where the loss is
    of some tokens only, which have 1 there.
    """

    metric_names = {
        "rtd_auc": "replaced token detection AUC",
        "rtd_precision": "replaced token detection precision",
        "rtd_recall": "replaced token detection recall",
    }
    vital_metrics = ("rtd_auc",)
    examples_legend = (
        "[original > replacement p]: replaced, and the discriminator's\nprobability of "
        "that; <token p>: wrongly suspected"
    )

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.sampled_accuracy = keras.metrics.Mean(name="sampled_accuracy")
        self.replaced_fraction = keras.metrics.Mean(name="replaced_fraction")
        self.auc = keras.metrics.AUC(num_thresholds=AUC_THRESHOLDS, name="rtd_auc")
        self.precision = keras.metrics.Precision(name="rtd_precision")
        self.recall = keras.metrics.Recall(name="rtd_recall")

    def loss(self, outputs):
        logits, replaced, weights = outputs["rtd"]
        loss = replaced_token_detection_loss(logits, replaced)
        return loss, outputs.get("rtd_learned", weights)

    def update_metrics(self, outputs):
        text, (logits, replaced, weights) = outputs["corrupted"], outputs["rtd"]
        same = ops.cast(text.restored, "float32")
        self.sampled_accuracy.update_state(same, text.masking.weights)
        self.replaced_fraction.update_state(replaced, weights)
        # The area is the same on any scale. On this one Keras's thresholds, which are
        # evenly spaced, are closest where the logits begin and most of them stay.
        self.auc.update_state(replaced, ops.sigmoid(0.5 * logits + 1.0), weights)
        for metric in (self.precision, self.recall):
            metric.update_state(replaced, ops.sigmoid(logits), weights)

    def baselines(self, metrics, unigram):
        return random_detector(metrics)

    def warnings(self, metrics, unigram):
        if metrics["rtd_auc"] < 0.55:
            yield (
                "the discriminator does not tell replaced tokens from original ones "
                f"(AUC {metrics['rtd_auc']:.2f}, recall {metrics['rtd_recall']:.2f}). "
                "Try a lower --learning_rate, a longer warm-up, or more steps."
            )

    def describe(self, outputs, row, ids, token):
        from scipy.special import expit  # not above: help needs no SciPy

        text = outputs["corrupted"]
        probabilities = expit(outputs["rtd"].logits[row])
        for position, original in enumerate(ids):
            present, p = text.token_ids[row][position], probabilities[position]
            if present != original:
                change = f"{token(original)} > {token(present)}"
                more = self.describe_replaced(outputs, row, position, token)
                yield position, f"[{change} {p:.2f}{more}]"
            elif p > 0.5:
                yield position, f"<{token(original)} {p:.2f}>"

    def describe_replaced(self, outputs, row, position, token):
        """Returns what else is written of a replaced token, a string."""
        return ""


def replaced_token_detection_loss(logits, replaced):
    """Binary cross-entropy at each position.

    Args:
        logits: `[batch, length]`, of "this token was replaced".
        replaced: float `[batch, length]`, 1 where it was.

    Returns:
        float32 `[batch, length]`.

    >>> import numpy as np
    >>> loss = replaced_token_detection_loss(np.zeros((1, 2)), np.array([[0.0, 1.0]]))
    >>> bool(np.allclose(loss, np.log(2)))
    True
    """
    logits = ops.cast(logits, "float32")
    # log(1 + e^z) - y z, the cross-entropy with sigmoid(z), without overflow
    return ops.softplus(logits) - logits * ops.cast(replaced, "float32")


def random_detector(metrics):
    """Scores a detector that flags as many tokens as the model did, but at random.

    Args:
        metrics: The model's validation metrics.

    Returns:
        What `Objective.baselines` does: the AUC, the precision (the fraction replaced)
        and the recall (the fraction flagged).
    """
    replaced = metrics["replaced_fraction"]
    precision, recall = metrics["rtd_precision"], metrics["rtd_recall"]
    flagged = recall * replaced / precision if precision else 0.0
    return {
        "rtd_auc": (0.5, "chance"),
        "rtd_precision": (replaced, "chance"),
        "rtd_recall": (flagged, "chance"),
    }
