"""Masked language modelling (Devlin et al., 2019; Clark's thesis, 5.1.1).

L_MLM = mean over masked positions t of -log p(x_t | x with [MASK]s)
"""

import keras
from keras import ops

from keras_corrupt.heads.softmax import cross_entropy, likeliest
from keras_corrupt.objectives.objective import Objective


class MaskedTokens(Objective):
    """Predicts masked tokens: reads the `Predictions` `outputs["mlm"]`."""

    metric_names = {
        "mlm_loss": "masked LM loss (nats)",
        "mlm_accuracy": "masked LM accuracy",
    }
    examples_legend = "[original: prediction]"

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.accuracy = keras.metrics.Mean(name="mlm_accuracy")

    def loss(self, outputs):
        mlm = outputs["mlm"]
        return masked_lm_loss(mlm.logits, mlm.target_ids), mlm.masking.weights

    def update_metrics(self, outputs):
        mlm = outputs["mlm"]
        correct = correct_predictions(mlm.logits, mlm.target_ids)
        self.accuracy.update_state(correct, mlm.masking.weights)

    def baselines(self, metrics, unigram):
        return {
            "mlm_loss": (unigram.loss, "unigram"),
            "mlm_accuracy": (unigram.accuracy, "unigram"),
        }

    def warnings(self, metrics, unigram):
        if metrics["mlm_loss"] > unigram.loss:
            yield (
                f"the masked language model (loss {metrics['mlm_loss']:.2f}) is no "
                f"better than token frequencies ({unigram.loss:.2f}). Try a lower "
                "--learning_rate or a longer warm-up."
            )
        yield from few_replaced(metrics)

    def describe(self, outputs, row, ids, token):
        mlm = outputs["mlm"]
        predicted = mlm.logits[row].argmax(axis=-1)
        for slot, position in enumerate(mlm.masking.positions[row]):
            if mlm.masking.weights[row][slot]:
                yield position, f"[{token(ids[position])}: {token(predicted[slot])}]"


def few_replaced(metrics):
    """Yields a warning if the samples of a generator are mostly the original tokens."""
    if metrics.get("sampled_accuracy", 0.0) > 0.8:
        yield (
            "the generator restores most tokens, so that few are replaced "
            f"({metrics['replaced_fraction']:.3f} of all). Try a smaller generator "
            "or a higher --mask_rate."
        )


def masked_lm_loss(logits, target_ids):
    """Cross-entropy of the original tokens at each masked position.

    Args:
        logits: `[batch, masked, vocabulary]`.
        target_ids: int `[batch, masked]`, the original tokens.

    Returns:
        float32 `[batch, masked]`.

    >>> import numpy as np
    >>> loss = masked_lm_loss(np.zeros((1, 1, 8)), np.array([[3]]))
    >>> bool(np.isclose(float(loss[0, 0]), np.log(8)))
    True
    """
    return cross_entropy(logits, target_ids)


def correct_predictions(logits, target_ids):
    """Returns 1.0 where the likeliest token is the original, `[batch, masked]`."""
    predicted = likeliest(logits)
    return ops.cast(predicted == ops.cast(target_ids, "int32"), "float32")
