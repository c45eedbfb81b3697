"""Contrasting texts by two views of each (Meng et al., 2021, equation 4).

    L_SCL = mean over views s of -cos(s, s+) + log (sum over s' of exp(cos(s, s')))

The views of a text are its corrupted form and a crop of it: s and s+ are the vectors of
their first positions, [CLS], and s' goes through the views of all texts of the batch
but s. Figure 7 shows the metrics.
"""

from typing import NamedTuple

import keras
from keras import ops

from keras_corrupt.objectives.copying import LOG_ZERO
from keras_corrupt.objectives.objective import Objective


class Views(NamedTuple):
    """How alike the views of texts are.

    Attributes:
        cosines: float32 `[batch, 2, all texts, 2]`.
        same_text: Boolean `[batch, all texts]`, which of all each text is.
        present: Boolean `[batch]`, false for rows of padding.
        all_present: Boolean `[all texts]`, likewise.
    """

    cosines: object
    same_text: object
    present: object
    all_present: object


class SequenceContrast(Objective):
    """Draws the two views of a text towards each other, and away from all others.

    It reads the `Views` `outputs["views"]`.
    """

    metric_names = {
        "positive_cosine": "cosine of a text's two views",
        "random_cosine": "cosine of different texts' views",
        "alignment": "alignment (0 is best)",
        "uniformity": "uniformity (lower is better)",
    }

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.positive = keras.metrics.Mean(name="positive_cosine")
        self.random = keras.metrics.Mean(name="random_cosine")
        self.alignment = keras.metrics.Mean(name="alignment")
        self.uniformity = LogMean(name="uniformity")

    def loss(self, outputs):
        views = outputs["views"]
        loss = contrastive_loss(views.cosines, views.same_text, views.all_present)
        present = ops.cast(views.present, "float32")
        return loss, ops.broadcast_to(present[:, None], ops.shape(loss))

    def update_metrics(self, outputs):
        cosines, same_text, present, all_present = outputs["views"]
        present = ops.cast(present, "float32")
        positive = positive_cosines(cosines, same_text)
        self.positive.update_state(positive, present)
        # The mean squared distance of unit vectors (Wang and Isola, 2020).
        self.alignment.update_state(2.0 - 2.0 * positive, present)
        pairs = ops.cast(negative_pairs(same_text, all_present), "float32")
        pairs = ops.broadcast_to(
            pairs * present[:, None, None, None], ops.shape(cosines)
        )
        # In a row: Keras's metrics take the mean over all axes but the first, and then
        # pairs would count less in larger batches.
        cosines, pairs = (ops.reshape(x, (-1,)) for x in (cosines, pairs))
        self.random.update_state(cosines, pairs)
        self.uniformity.update_state(gaussian_potential(cosines), pairs)

    def baselines(self, metrics, unigram):
        return {"positive_cosine": (metrics["random_cosine"], "other texts")}

    def warnings(self, metrics, unigram):
        if metrics["positive_cosine"] <= metrics["random_cosine"]:
            yield (
                "the two views of a text are no more alike (cosine "
                f"{metrics['positive_cosine']:.2f}) than views of different texts "
                f"({metrics['random_cosine']:.2f}). Try a larger --batch_size, which "
                "has more texts to tell apart; --accumulate leaves fewer."
            )


class LogMean(keras.metrics.Mean):
    """The logarithm of a mean."""

    def result(self):
        # The mean of no values is 0; opposite vectors have exp(-8), the least.
        return ops.log(ops.maximum(super().result(), ops.exp(-8.0)))


def unit_vectors(states):
    """Divides vectors by their length, in float32; zero vectors stay."""
    return ops.normalize(ops.cast(states, "float32"), axis=-1, order=2)


def cosines(views, all_views):
    """Cosines of the views of some texts with the views of all.

    Args:
        views: float32 `[texts, 2, size]`, of length 1.
        all_views: float32 `[all texts, 2, size]`, of length 1.

    Returns:
        float32 `[texts, 2, all texts, 2]`.
    """
    return ops.tensordot(views, all_views, axes=[[2], [2]])


def positive_cosines(cosines, same_text):
    """Returns the cosine of each text's two views, float32 `[texts]`.

    Args:
        cosines: float32 `[texts, 2, all texts, 2]`.
        same_text: Boolean `[texts, all texts]`.
    """
    return ops.sum(ops.where(same_text, cosines[:, 0, :, 1], 0.0), axis=1)


def negative_pairs(same_text, present):
    """Returns which pairs of views are of two texts, boolean `[texts, 1, all, 1]`.

    Args:
        same_text: Boolean `[texts, all texts]`.
        present: Boolean `[all texts]`: others are padding.
    """
    return ops.logical_and(ops.logical_not(same_text), present)[:, None, :, None]


def contrastive_loss(cosines, same_text, present):
    """Cross-entropy of a text's other view among all views of the batch.

    With temperature 1, in both directions. A text that is alone has nothing that it
    could be confused with, and a loss of 0.

    Args:
        cosines: float32 `[texts, 2, all texts, 2]`.
        same_text: Boolean `[texts, all texts]`, which of all each text is.
        present: Boolean `[all texts]`: others are padding.

    Returns:
        float32 `[texts, 2]`.

    >>> import numpy as np
    >>> same, present = np.eye(8, dtype=bool), np.ones(8, dtype=bool)
    >>> loss = contrastive_loss(np.zeros((8, 2, 8, 2), "float32"), same, present)
    >>> bool(np.allclose(loss, np.log(15)))  # itself is no candidate
    True
    """
    positive = positive_cosines(cosines, same_text)[:, None]  # of both views
    counted = negative_pairs(same_text, present)
    return info_nce(positive, cosines, counted, axis=(2, 3))


def info_nce(positive, others, counted, axis=-1):
    """Cross-entropy of the right candidate among itself and wrong ones.

    Args:
        positive: The right candidate's logit, float32 `[...]`.
        others: Logits, float32 `[..., candidates]`.
        counted: Boolean, which of the others are wrong candidates.
        axis: The axis, or axes, of the candidates.

    Returns:
        float32 `[...]`; 0 where there is no wrong candidate.

    >>> import numpy as np
    >>> loss = info_nce(np.zeros(1), np.zeros((1, 4)), np.array([[1, 1, 1, 0]]) > 0)
    >>> bool(np.allclose(loss, np.log(4)))
    True
    """
    others = ops.logsumexp(ops.where(counted, others, LOG_ZERO), axis=axis)
    return ops.logaddexp(positive, others) - positive


def gaussian_potential(cosines):
    """Returns `exp(-2 |x - y|^2)` of unit vectors, whose log-mean is uniformity.

    Wang and Isola, "Understanding contrastive representation learning through alignment
    and uniformity on the hypersphere", 2020.

    >>> import numpy as np
    >>> np.log(gaussian_potential(np.array([1.0, 0.0]))).round(3).tolist()
    [0.0, -4.0]
    """
    return ops.exp(-4.0 * (1.0 - cosines))
