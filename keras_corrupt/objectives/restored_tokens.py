"""Restoring what a generator replaced (Replace MLM; Clark's thesis, 5.4.3).

    L_LM = mean over masked positions t of -log p(x_t | x~)

x is the text, x~ the text with a generator's samples at the masked positions.
"""

import keras

from keras_corrupt.objectives.masked_tokens import correct_predictions, masked_lm_loss
from keras_corrupt.objectives.objective import Objective


class RestoredTokens(Objective):
    """Predicts the tokens that were replaced.

    It reads the logits `outputs["lm"]`, float32 `[batch, masked, vocabulary]`, and the
    `Corrupted` `outputs["corrupted"]`.
    """

    metric_names = {
        "lm_loss": "restoration loss (nats)",
        "lm_accuracy": "restoration accuracy",
    }
    examples_legend = "[original > sample: what the model would write]"

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.accuracy = keras.metrics.Mean(name="lm_accuracy")

    def loss(self, outputs):
        text = outputs["corrupted"]
        return masked_lm_loss(outputs["lm"], text.target_ids), text.masking.weights

    def update_metrics(self, outputs):
        text = outputs["corrupted"]
        correct = correct_predictions(outputs["lm"], text.target_ids)
        self.accuracy.update_state(correct, text.masking.weights)

    def baselines(self, metrics, unigram):
        return {
            "lm_loss": (unigram.loss, "unigram"),
            "lm_accuracy": (unigram.accuracy, "unigram"),
        }

    def describe(self, outputs, row, ids, token):
        text = outputs["corrupted"]
        predicted = outputs["lm"][row].argmax(axis=-1)
        for slot, position in enumerate(text.masking.positions[row]):
            if text.masking.weights[row][slot]:
                sample = token(text.sampled_ids[row][slot])
                change = f"{token(ids[position])} > {sample}: {token(predicted[slot])}"
                yield position, f"[{change}]"
