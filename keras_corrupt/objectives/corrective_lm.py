"""Correcting corrupted text (Meng et al., 2021, equations 2 and 3).

    p_LM(x|h_t) = 1[x = x~_t] p_copy(1|h_t) + p_copy(0|h_t) softmax(x|h_t)
    L_copy = mean over tokens t of -log p_copy(1[x~_t = x_t] | h_t)
    L_LM   = mean over masked positions t of -log p_LM(x_t|h_t)

x is the text, x~ the text with the auxiliary network's samples, h_t what the main
network makes of position t of x~, and p_copy(1|h_t) the probability that x~_t is the
original, through which L_LM has no gradient. L_copy is replaced token detection with
the labels reversed. Figures 1, 5 and 8 show the metrics.
"""

from typing import NamedTuple

import keras
from keras import ops

from keras_corrupt.heads.softmax import likeliest
from keras_corrupt.objectives.all_tokens import all_tokens_loss
from keras_corrupt.objectives.copying import original_log_probability
from keras_corrupt.objectives.masked_tokens import masked_lm_loss
from keras_corrupt.objectives.objective import Objective
from keras_corrupt.objectives.replaced_tokens import ReplacedTokens


class Corrections(NamedTuple):
    """What the main network would write at the masked positions.

    Attributes:
        logits: float32 `[batch, masked, vocabulary]`, of the softmax.
        corrected_ids: int32 `[batch, masked]`, the likeliest tokens.
    """

    logits: object
    corrected_ids: object


class Copying(ReplacedTokens):
    """L_copy: `ReplacedTokens`, and how many original tokens are taken for such.

    Args:
        corrects: Whether the model predicts the original tokens, too; its examples show
            `Corrections`, `outputs["lm"]`, then.
        kwargs: Arguments of `Objective`.
    """

    metric_names = {
        **ReplacedTokens.metric_names,
        "rtd_recall": "copy accuracy, replaced tokens (RTD recall)",
        "original_copy_accuracy": "copy accuracy, original tokens",
    }

    def __init__(self, corrects, **kwargs):
        super().__init__(**kwargs)
        self.corrects = corrects
        if corrects:
            self.examples_legend += "; after a colon what it\nwould write"
        self.copied = keras.metrics.Mean(name="original_copy_accuracy")

    def update_metrics(self, outputs):
        super().update_metrics(outputs)
        logits, replaced, weights = outputs["rtd"]
        original = (1.0 - replaced) * ops.cast(weights, "float32")
        self.copied.update_state(ops.cast(logits <= 0, "float32"), original)

    def describe_replaced(self, outputs, row, position, token):
        if not self.corrects:
            return ""
        positions, weights = outputs["corrupted"].masking
        at = (positions[row] == position) & (weights[row] > 0)
        (slot, *_) = at.nonzero()[0]
        return f": {token(outputs['lm'].corrected_ids[row][slot])}"


class CorrectiveLM(Objective):
    """L_LM, or what table 3 has in its place.

    It reads the `Corrections` `outputs["lm"]` and the `Detections` `outputs["rtd"]`;
    for all tokens, `outputs["log_softmax"]`, as `AllTokens` does.

    Args:
        task: `"clm"`, `"clm_without_copy"`, `"clm_without_stop_gradient"` or
            `"all_token_lm"`: see `CocoLM`.
        kwargs: Arguments of `Objective`.
    """

    metric_names = {
        "replaced_lm_accuracy": "LM accuracy, replaced tokens",
        "original_lm_accuracy": "LM accuracy, original tokens",
    }

    def __init__(self, task, **kwargs):
        super().__init__(**kwargs)
        self.task = task
        self.of_replaced = keras.metrics.Mean(name="replaced_lm_accuracy")
        self.of_original = keras.metrics.Mean(name="original_lm_accuracy")

    def loss(self, outputs):
        if self.task == "all_token_lm":
            return all_tokens_loss(outputs["log_softmax"], outputs["rtd"])
        text = outputs["corrupted"]
        loss = masked_lm_loss(outputs["lm"].logits, text.target_ids)
        if self.task != "clm_without_copy":
            logits, positions = outputs["rtd"].logits, text.masking.positions
            loss = -original_log_probability(
                -loss,
                ops.take_along_axis(logits, positions, axis=1),
                text.restored,
                stop_gradient=self.task == "clm",
            )
        return loss, text.masking.weights

    def update_metrics(self, outputs):
        text = outputs["corrupted"]
        right = ops.cast(outputs["lm"].corrected_ids == text.target_ids, "float32")
        same = ops.cast(text.restored, "float32")
        weights = text.masking.weights
        self.of_replaced.update_state(right, weights * (1.0 - same))
        self.of_original.update_state(right, weights * same)


def corrected_tokens(lm_logits, replaced_logits, corrupted_ids):
    """Returns the likeliest tokens by `p_LM`; no gradient flows.

    Args:
        lm_logits: `[batch, masked, vocabulary]`.
        replaced_logits: `[batch, masked]`, logits of "this token was replaced".
        corrupted_ids: int32 `[batch, masked]`, the tokens that the main network read.

    Returns:
        int32 `[batch, masked]`.
    """
    lm_logits = ops.stop_gradient(lm_logits)
    guesses = likeliest(lm_logits)

    def log_probability(token_ids):
        log_softmax = -masked_lm_loss(lm_logits, token_ids)
        same = token_ids == corrupted_ids
        return original_log_probability(log_softmax, replaced_logits, same)

    copies = log_probability(corrupted_ids) >= log_probability(guesses)
    return ops.where(copies, corrupted_ids, guesses)
