r"""Noise-contrastive estimation of a cloze model (Clark's thesis, 5.1.2 to 5.1.5).

    E(x)_t          = w . h(x)_t
    p^(x_t | x_\t)  = exp(-E(x)_t)
    D(x)_t          = k q / ((n - k) p^ + k q)
                    = sigmoid(E(x)_t + log(k q(x_t | x_\t) / (n - k)))
    L_NCE           = mean over tokens t of -log D(x~)_t        where x~_t was sampled
                                            -log(1 - D(x~)_t)   elsewhere

x~ is the text x with k of its n tokens replaced, all at once, by samples from q
(algorithm 2). D is the probability of "sampled", as in 5.1.5 and in the algorithm's
loss lines; its first step, and 5.1.3, call 1 - D by that name. A sample counts as noise
even where it is the token that stood there.

With one sample at a time (algorithm 1) the loss is least where p^ = p, so that energies
need no normalisation. Algorithm 2 assumes that other samples do not change p^. Its loss
is least where p^(x_t | x_\t) is the frequency of x among texts whose x_t is no sample,
over the frequency of x_\t among texts whose x_t is one. With q near p this is p. With a
poor q, -E is off by half a nat or more, and p^ does not add up to 1.

n counts the tokens that samples may replace: the sums over t leave out special tokens
and padding. A token that is never noise would have any energy, and with it among the n
the odds of noise would not be k / (n - k).
"""

import keras
from keras import ops

from keras_corrupt.corruption import add_up
from keras_corrupt.objectives.replaced_tokens import (
    ReplacedTokens,
    replaced_token_detection_loss,
)


class NoiseContrastive(ReplacedTokens):
    """Tells samples of q from tokens of the text, by energies.

    In the `Detections` `outputs["rtd"]` a token counts as replaced where a sample
    stands. It reads `outputs["energies"]`, `[batch, length]`, too.
    """

    metric_names = {
        **ReplacedTokens.metric_names,
        "energy": "mean energy of original tokens (nats)",
    }
    examples_legend = (
        "[original > sample p]: a sample, and the discriminator's\nprobability of "
        "that; <token p>: wrongly suspected"
    )

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.energy = keras.metrics.Mean(name="energy")

    def update_metrics(self, outputs):
        super().update_metrics(outputs)
        original = outputs["rtd"].weights * (1.0 - outputs["rtd"].replaced)
        self.energy.update_state(outputs["energies"], original)

    def baselines(self, metrics, unigram):
        energy = {"energy": (unigram.loss, "unigram")}
        return {**super().baselines(metrics, unigram), **energy}


def sampled_labels(masking, length):
    """Returns float32 `[batch, length]`: 1 where a sample stands.

    Args:
        masking: The `Masking` whose positions got samples.
        length: Tokens of a sequence.

    >>> import numpy as np
    >>> from keras_corrupt.corruption import Masking
    >>> masking = Masking(np.array([[2, 1, 0]]), np.array([[1.0, 1.0, 0.0]]))
    >>> np.array(sampled_labels(masking, 4)).tolist()
    [[0.0, 1.0, 1.0, 0.0]]
    """
    samples = add_up(ops.cast(masking.weights, "float32"), masking.positions, length)
    return ops.minimum(samples, 1.0)


def log_noise(cloze_losses, sampled_losses, masking):
    """Puts together log q of the tokens of a text with samples in it.

    Args:
        cloze_losses: `[batch, length]`, -log q of the original tokens.
        sampled_losses: `[batch, masked]`, -log q of the samples.
        masking: The `Masking` whose positions got samples.

    Returns:
        float32 `[batch, length]`. No gradient flows: q is no part of what D learns.
    """
    length = ops.shape(cloze_losses)[1]
    weighted = ops.cast(masking.weights, "float32") * sampled_losses
    of_samples = add_up(weighted, masking.positions, length)
    sampled = sampled_labels(masking, length)
    return -ops.stop_gradient(ops.where(sampled > 0, of_samples, cloze_losses))


def noise_logits(energies, log_q, num_sampled, num_tokens):
    """The logit of D, "this token was sampled from q", in algorithm 2.

    Args:
        energies: `[batch, length]`.
        log_q: `[batch, length]`, log q of the tokens whose energies those are.
        num_sampled: k, float `[batch]`.
        num_tokens: n, float `[batch]`.

    Returns:
        float32 `[batch, length]`: E + log(k q / (n - k)).

    >>> import numpy as np
    >>> one = np.ones((1, 1))  # the token that q has sampled with probability 1/4
    >>> logit = noise_logits(0 * one, np.log(one / 4), 2 * one[0], 10 * one[0])
    >>> bool(np.isclose(logit[0, 0], np.log(2 / 4 / 8)))
    True
    """
    # Where none, or all, was replaced, the odds stay finite.
    sampled = ops.maximum(ops.cast(num_sampled, "float32"), 1.0)
    left = ops.maximum(ops.cast(num_tokens, "float32") - sampled, 1.0)
    odds = ops.log(sampled) - ops.log(left)  # [batch]
    return ops.cast(energies, "float32") + ops.cast(log_q, "float32") + odds[:, None]


def nce_loss_one_by_one(energies_of, log_q, token_ids, positions, samples):
    r"""Algorithm 1: an unbiased estimate of the loss, of k + 1 passes for one text.

    Each sample is put into the text alone. Training uses algorithm 2, one pass for all;
    this is what it estimates, for tests and small experiments.

    Args:
        energies_of: Function of int `[texts, n]` that gives E, `[texts, n]`.
        log_q: `[n, vocabulary]`, log q(. | x_\t) at each position.
        token_ids: int `[n]`, the text. All its tokens are learned from.
        positions: int `[k]`, drawn uniformly, with replacement.
        samples: int `[k]`, each drawn from q at its position.

    Returns:
        A float32 scalar: the sum over n tokens of the text and k samples.
    """
    token_ids, positions, samples = (
        ops.cast(x, "int32") for x in (token_ids, positions, samples)
    )
    n, k = ops.shape(token_ids)[0], ops.shape(positions)[0]
    odds = ops.log(ops.cast(k, "float32")) - ops.log(ops.cast(n, "float32"))
    at_position = ops.arange(n, dtype="int32")[None, :] == positions[:, None]
    replaced = ops.where(at_position, samples[:, None], token_ids[None, :])
    texts = ops.concatenate([token_ids[None, :], replaced], axis=0)  # [1 + k, n]
    log_q_of_texts = ops.take_along_axis(log_q, ops.transpose(texts), axis=1)
    logits = energies_of(texts) + ops.transpose(log_q_of_texts) + odds
    real = ops.sum(replaced_token_detection_loss(logits[0], 0.0))
    of_samples = ops.take_along_axis(logits[1:], positions[:, None], axis=1)
    return real + ops.sum(replaced_token_detection_loss(of_samples, 1.0))
