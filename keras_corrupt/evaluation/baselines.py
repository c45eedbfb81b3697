"""What a model must beat: guessing by frequency, and guessing at random."""

import numpy as np


def unigram_baseline(unigrams, token_ids, padding_mask, unmaskable_ids):
    """Scores predicting every token from the training corpus's frequencies alone.

    Masked positions are a uniform sample of the maskable ones, so the mean over all
    of those is what a unigram model would reach as a masked language model.

    Args:
        unigrams: int `[vocabulary]`, counts of the tokens in the training corpus.
        token_ids: int `[examples, length]`, the validation examples.
        padding_mask: int `[examples, length]`.
        unmaskable_ids: Ids never masked.

    Returns:
        `(loss, accuracy)`: the cross-entropy in nats, and the fraction that is the
        most frequent token.

    >>> loss, accuracy = unigram_baseline(
    ...     np.array([0, 3, 1]), np.array([[1, 2, 0]]), np.array([[1, 1, 0]]), (0,))
    >>> bool(np.isclose(loss, -np.log(4 / 6) / 2 - np.log(2 / 6) / 2)), accuracy
    (True, 0.5)
    """
    counts = np.array(unigrams, np.float64) + 1.0  # a token may be new in validation
    counts[list(unmaskable_ids)] = 0.0
    maskable = (padding_mask == 1) & ~np.isin(token_ids, list(unmaskable_ids))
    tokens = token_ids[maskable]
    losses = -np.log(counts[tokens] / counts.sum())
    return float(losses.mean()), float((tokens == counts.argmax()).mean())


def random_detector(metrics):
    """Scores a detector that flags as many tokens as the model did, but at random.

    Args:
        metrics: The model's validation metrics.

    Returns:
        A dict: its AUC, its precision (the fraction replaced) and its recall (the
        fraction flagged).
    """
    replaced = metrics["val_replaced_fraction"]
    precision, recall = metrics["val_rtd_precision"], metrics["val_rtd_recall"]
    flagged = recall * replaced / precision if precision else 0.0
    return {
        "val_rtd_auc": 0.5,
        "val_rtd_precision": replaced,
        "val_rtd_recall": flagged,
    }
