"""Correcting and contrasting corrupted text (Meng et al., 2021, equations 2 to 4).

    p_LM(x|h_t) = 1[x = x~_t] p_copy(1|h_t) + p_copy(0|h_t) softmax(x|h_t)
    L_copy = mean over tokens t of -log p_copy(1[x~_t = x_t] | h_t)
    L_LM   = mean over masked positions t of -log p_LM(x_t|h_t)
    L_SCL  = mean over views s of -cos(s, s+) + log (sum over s' of exp(cos(s, s')))
    L      = L_MLM + 50 L_copy + L_LM + L_SCL

x is the text, x~ the text with the auxiliary network's samples, h_t what the main
network makes of position t of x~, and p_copy(1|h_t) the probability that x~_t is the
original, through which L_LM has no gradient. The views of a text are x~ and a crop of
x: s and s+ are the vectors of their first positions, [CLS], and s' goes through the
views of all texts of the batch but s. L_copy is replaced token detection with the
labels reversed.
"""

from keras import ops

from keras_corrupt.models.masked_lm.objective import masked_lm_loss
from keras_corrupt.models.replaced_token_detection.copying import (
    LOG_ZERO,
    original_log_probability,
)


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
    likeliest = likeliest_tokens(lm_logits)

    def log_probability(token_ids):
        log_softmax = -masked_lm_loss(lm_logits, token_ids)
        same = token_ids == corrupted_ids
        return original_log_probability(log_softmax, replaced_logits, same)

    copies = log_probability(corrupted_ids) >= log_probability(likeliest)
    return ops.where(copies, corrupted_ids, likeliest)


def likeliest_tokens(lm_logits):
    """Returns the likeliest tokens by the softmax alone, int32 `[batch, masked]`."""
    return ops.cast(ops.argmax(ops.stop_gradient(lm_logits), axis=-1), "int32")


def unit_vectors(states):
    """Divides vectors by their length, in float32; zero vectors stay."""
    return ops.normalize(ops.cast(states, "float32"), axis=-1, order=2)


def cosines(views, everything):
    """Cosines of the views of some texts with the views of all.

    Args:
        views: float32 `[texts, 2, size]`, of length 1.
        everything: float32 `[all texts, 2, size]`, of length 1.

    Returns:
        float32 `[texts, 2, all texts, 2]`.
    """
    return ops.tensordot(views, everything, axes=[[2], [2]])


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
    others = ops.where(counted, cosines, LOG_ZERO)
    others = ops.logsumexp(others, axis=(2, 3))  # [texts, 2]
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
