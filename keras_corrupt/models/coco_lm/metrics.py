"""What COCO-LM's paper looks at: figures 1, 5, 7 and 8."""

import keras
from keras import ops

from keras_corrupt.models.coco_lm import objective
from keras_corrupt.models.replaced_token_detection.generator_discriminator import (
    ReplacedTokenDetection,
)

_COPYING = {
    "rtd_recall": "copy accuracy, replaced tokens (RTD recall)",
    "original_copy_accuracy": "copy accuracy, original tokens",
}
_CORRECTION = {
    "replaced_lm_accuracy": "LM accuracy, replaced tokens",
    "original_lm_accuracy": "LM accuracy, original tokens",
}
_CONTRAST = {
    "positive_cosine": "cosine of a text's two views",
    "random_cosine": "cosine of different texts' views",
    "alignment": "alignment (0 is best)",
    "uniformity": "uniformity (lower is better)",
}


def metric_names(corrects, contrasts):
    """Returns validation metric -> its name for people; see `Pretrainer`.

    Args:
        corrects: Whether the model predicts the original tokens.
        contrasts: Whether it compares texts.
    """
    return {
        **ReplacedTokenDetection.metric_names,
        **_COPYING,
        **(_CORRECTION if corrects else {}),
        **(_CONTRAST if contrasts else {}),
    }


class LogMean(keras.metrics.Mean):
    """The logarithm of a mean."""

    def result(self):
        # Of no values the mean is 0; of opposite vectors it is exp(-8), the least.
        return ops.log(ops.maximum(super().result(), ops.exp(-8.0)))


def analyses(outputs):
    """Computes what the metrics are means of, from the outputs of `CocoLM.call`.

    - Copy accuracy: whether an original token is taken for one, at all positions.
    - LM accuracy: whether the original token is the likeliest one, at masked positions
      where another one was sampled, and where it was sampled itself (figure 8).
    - Cosines of a text's two views, and of views of different texts (figure 7).
    - Alignment and uniformity (Wang and Isola, 2020): the mean squared distance of the
      former, and the log-mean of the latter's Gaussian potential.

    Args:
        outputs: What the model's `call` returned.

    Returns:
        A dict from names to values and their weights, of one shape.
    """
    original = (1.0 - outputs["replaced"]) * ops.cast(outputs["rtd_weights"], "float32")
    copied = ops.cast(outputs["rtd_logits"] <= 0, "float32")
    found = {"original_copy_accuracy": (copied, original)}
    if "corrected_ids" in outputs:
        targets, weights = outputs["target_ids"], outputs["masked_weights"]
        right = ops.cast(outputs["corrected_ids"] == targets, "float32")
        same = ops.cast(outputs["sampled_ids"] == targets, "float32")
        found["replaced_lm_accuracy"] = right, weights * (1.0 - same)
        found["original_lm_accuracy"] = right, weights * same
    if "cosines" in outputs:
        cosines, same_text = outputs["cosines"], outputs["same_text"]
        present = ops.cast(outputs["present"], "float32")
        positive = objective.positive_cosines(cosines, same_text)
        pairs = objective.negative_pairs(same_text, outputs["all_present"])
        pairs = ops.cast(pairs, "float32") * present[:, None, None, None]
        pairs = ops.broadcast_to(pairs, ops.shape(cosines))
        found["positive_cosine"] = positive, present
        found["alignment"] = 2.0 - 2.0 * positive, present
        # In a row: Keras's metrics take the mean over all axes but the first, and then
        # pairs would count less in larger batches.
        cosines, pairs = (ops.reshape(x, (-1,)) for x in (cosines, pairs))
        found["random_cosine"] = cosines, pairs
        found["uniformity"] = objective.gaussian_potential(cosines), pairs
    return found
