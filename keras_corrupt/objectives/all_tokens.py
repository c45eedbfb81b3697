"""Predicting all tokens, most of them by copying (All-Tokens MLM).

    p(x_t | x~) = D(x~)_t 1[x_t = x~_t] + (1 - D(x~)_t) softmax(x_t | x~)
    L           = mean over tokens t of -log p(x_t | x~)

Clark's thesis, 5.4.3. x is the text, x~ the text with a generator's samples, and D the
probability of copying: `copying.py`.
"""

from keras_corrupt.objectives.copying import original_log_probability
from keras_corrupt.objectives.objective import Objective


class AllTokens(Objective):
    """Predicts every token of the text; it learns to copy by that alone.

    It reads `outputs["log_softmax"]`, float32 `[batch, length]`, of the original
    tokens, and the `Detections` `outputs["rtd"]`, whose logits are of not copying.
    """

    metric_names = {"lm_loss": "loss of all tokens (nats)"}

    def loss(self, outputs):
        return all_tokens_loss(outputs["log_softmax"], outputs["rtd"])


def all_tokens_loss(log_softmax, detections):
    """Returns -log p(x_t | x~) and its weights, both `[batch, length]`.

    Args:
        log_softmax: float32 `[batch, length]`, of the original tokens.
        detections: The `Detections`, whose logits are of not copying.
    """
    logits, replaced, weights = detections
    log_p = original_log_probability(
        log_softmax, logits, replaced == 0, stop_gradient=False
    )
    return -log_p, weights
