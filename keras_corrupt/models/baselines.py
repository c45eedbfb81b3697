"""What a masked language model must beat: guessing tokens by their frequency."""

from typing import NamedTuple

import numpy as np


class Unigram(NamedTuple):
    """Scores of guessing masked tokens by their frequency in the training text.

    Attributes:
        loss: Cross-entropy, in nats.
        accuracy: Fraction of the tokens that are the most frequent one.
    """

    loss: float
    accuracy: float


def unigram_baseline(unigrams, token_ids, padding_mask, unmaskable_ids, packed_ids=()):
    """Scores predicting every token from the training corpus's frequencies alone.

    Masked positions are a uniform sample of the maskable ones, so the mean over all
    of those is what a unigram model would reach as a masked language model.

    Args:
        unigrams: int `[vocabulary]`, counts of the tokens in the training corpus.
        token_ids: int `[examples, length]`, the validation examples.
        padding_mask: int `[examples, length]`.
        unmaskable_ids: Ids never masked.
        packed_ids: Ids of tokens that were put around the text, `[CLS]` and `[SEP]`,
            which the counts lack. They are as frequent as in the validation examples.

    Returns:
        A `Unigram`.

    >>> loss, accuracy = unigram_baseline(
    ...     np.array([0, 3, 1]), np.array([[1, 2, 0]]), np.array([[1, 1, 0]]), (0,))
    >>> bool(np.isclose(loss, -np.log(4 / 6) / 2 - np.log(2 / 6) / 2)), accuracy
    (True, 0.5)
    """
    counts = np.array(unigrams, np.float64) + 1.0  # a token may be new in validation
    counts[[*packed_ids, *unmaskable_ids]] = 0.0
    tokens = token_ids[padding_mask == 1]
    per_token = counts.sum() / max(1, (~np.isin(tokens, list(packed_ids))).sum())
    for packed_id in set(packed_ids) - set(unmaskable_ids):
        counts[packed_id] = per_token * (tokens == packed_id).sum()
    maskable = (padding_mask == 1) & ~np.isin(token_ids, list(unmaskable_ids))
    tokens = token_ids[maskable]
    losses = -np.log(counts[tokens] / counts.sum())
    accuracy = (tokens == counts.argmax()).mean()
    return Unigram(float(losses.mean()), float(accuracy))
