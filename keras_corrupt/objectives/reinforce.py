"""Adversarial training of ELECTRA's generator (Clark's thesis, 5.3.4).

    R(x^_t)     = -log D(x^_t)        if x^_t = x_t
                  -log(1 - D(x^_t))   otherwise
    b_t         = -log sigmoid(w . h_q(x_masked)_t)
    gradient    = sum over masked t of (gradient of log q(x^_t)) (R(x^_t) - b_t)

The generator q ascends this gradient, one sample x^_t for each masked position. D is
the discriminator's probability that a token is the original one, so that R is its loss
there, and the baseline b learns the reward by cross-entropy: sigmoid(w . h_q) is to be
the probability exp(-R) that D gives to the right answer.
"""

from keras import ops

from keras_corrupt.objectives.masked_tokens import masked_lm_loss
from keras_corrupt.objectives.objective import Objective
from keras_corrupt.objectives.replaced_tokens import replaced_token_detection_loss


class Reinforce(Objective):
    """Raises the discriminator's loss where the generator's samples stand.

    It reads the logits of b, `outputs["baseline_logits"]`, float32 `[batch, masked]`,
    and what `MaskedTokens` and `ReplacedTokens` read.
    """

    def loss(self, outputs):
        text = outputs["corrupted"]
        log_q = -masked_lm_loss(outputs["mlm"].logits, text.sampled_ids)
        reward, baseline_logits = rewards_of(outputs), outputs["baseline_logits"]
        return loss(log_q, reward, baseline_logits), text.masking.weights


class Baseline(Objective):
    """Foretells the rewards: reads what `Reinforce` reads."""

    def loss(self, outputs):
        loss = baseline_loss(outputs["baseline_logits"], rewards_of(outputs))
        return loss, outputs["corrupted"].masking.weights


def rewards_of(outputs):
    """Returns the `rewards` of what a model's `call` returned."""
    text, logits = outputs["corrupted"], outputs["rtd"].logits
    logits = ops.take_along_axis(logits, text.masking.positions, axis=1)
    return rewards(logits, text.sampled_ids != text.target_ids)


def rewards(rtd_logits, replaced):
    """The discriminator's loss where samples stand; no gradient flows.

    Args:
        rtd_logits: `[batch, masked]`, of "this token was replaced".
        replaced: Boolean `[batch, masked]`, whether the sample is not the original.

    Returns:
        float32 `[batch, masked]`.

    >>> import numpy as np
    >>> found = rewards(np.log([[4.0, 4.0]]), np.array([[True, False]]))
    >>> bool(np.allclose(np.exp(-np.array(found)), [[0.8, 0.2]]))
    True
    """
    return ops.stop_gradient(replaced_token_detection_loss(rtd_logits, replaced))


def loss(log_q, reward, baseline_logits):
    """What has REINFORCE's gradient, times -1, for descent.

    Args:
        log_q: `[batch, masked]`, the log-probabilities of the samples.
        reward: `[batch, masked]`.
        baseline_logits: `[batch, masked]`, `w . h_q`; they have no gradient of this.

    Returns:
        float32 `[batch, masked]`.
    """
    baseline = ops.softplus(-ops.cast(baseline_logits, "float32"))
    return -log_q * ops.stop_gradient(reward - baseline)


def baseline_loss(baseline_logits, reward):
    """Cross-entropy of the baseline with the reward.

    Args:
        baseline_logits: `[batch, masked]`, `w . h_q`.
        reward: `[batch, masked]`.

    Returns:
        float32 `[batch, masked]`.

    >>> import numpy as np
    >>> z, reward = np.array([[0.0, 1.0, 2.0]]), np.log([[1 + np.exp(-1.0)] * 3])
    >>> int(np.argmin(baseline_loss(z, reward)))  # where -log sigmoid(z) is the reward
    1
    """
    logits = ops.cast(baseline_logits, "float32")
    return ops.softplus(logits) - logits * ops.exp(-ops.cast(reward, "float32"))
