"""Multi-word selection (Shen et al., 2021, equations 7 to 9).

    P(x_t | x~, S_t) = exp(e(x_t) . h_t) / sum over x' in S_t of exp(e(x') . h_t)
    L_MWS = mean over masked positions t of -log P(x_t | x~, S_t)
    L     = L_MLM + 5 L_RTD + 2 L_MWS

x is the text, x~ the text with the generator's samples, S_t the original token x_t and
K others that the generator finds likely, e(x) a token's embedding, and h_t what the
discriminator makes of position t of x~. L_RTD is ELECTRA's.
"""

from typing import NamedTuple

import keras
from keras import ops

from keras_corrupt.objectives.objective import Objective


class Selections(NamedTuple):
    """What a discriminator says of each masked position's candidates.

    Attributes:
        candidate_ids: int32 `[batch, masked, candidates]`; the original token is first.
        logits: float32 `[batch, masked, candidates]`.
    """

    candidate_ids: object
    logits: object


class MultiWordSelection(Objective):
    """Selects the original token among candidates.

    It reads the `Selections` `outputs["mws"]` and the `Corrupted`
    `outputs["corrupted"]`.

    Args:
        num_candidates: Candidates of each position, the original token included.
        kwargs: Arguments of `Objective`.
    """

    metric_names = {"mws_accuracy": "multi-word selection accuracy"}

    def __init__(self, num_candidates, **kwargs):
        super().__init__(**kwargs)
        self.num_candidates = num_candidates
        self.accuracy = keras.metrics.Mean(name="mws_accuracy")

    def loss(self, outputs):
        weights = outputs["corrupted"].masking.weights
        return multi_word_selection_loss(outputs["mws"].logits), weights

    def update_metrics(self, outputs):
        correct = correct_selections(outputs["mws"].logits)
        self.accuracy.update_state(correct, outputs["corrupted"].masking.weights)

    def baselines(self, metrics, unigram):
        return {"mws_accuracy": (1 / self.num_candidates, "chance")}


def multi_word_selection_loss(logits):
    """Cross-entropy of the original token among its candidates.

    Args:
        logits: `[batch, masked, candidates]`; the original token is the first.

    Returns:
        float32 `[batch, masked]`.

    >>> import numpy as np
    >>> loss = multi_word_selection_loss(np.zeros((1, 1, 6)))
    >>> bool(np.isclose(float(loss[0, 0]), np.log(6)))
    True
    """
    logits = ops.cast(logits, "float32")
    return ops.logsumexp(logits, axis=-1) - logits[..., 0]


def correct_selections(logits):
    """Returns 1.0 where the original beats all other candidates, `[batch, masked]`."""
    # Not argmax: a model without an opinion would always select the first.
    others = ops.max(logits[..., 1:], axis=-1)
    return ops.cast(logits[..., 0] > others, "float32")
