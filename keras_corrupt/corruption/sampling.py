"""Sampling of tokens from a generator's output distribution."""

from keras import ops

from keras_corrupt.kernels import active
from keras_corrupt.kernels.plain import likeliest_others


def sample_tokens(logits, seed):
    """Draws one token per position from the softmax of its logits, exactly.

    No gradient flows through the draw.

    Args:
        logits: `[batch, masked, vocabulary]`.
        seed: A `keras.random.SeedGenerator`.

    Returns:
        int32 `[batch, masked]`.
    """
    return active().sample(logits, seed)


def sample_negatives(logits, target_ids, num_negatives, seed):
    """Draws different tokens per position from the softmax, never the original.

    The draws are successive: each is from the softmax over what is left. No gradient
    flows through them.

    Args:
        logits: `[batch, masked, vocabulary]`.
        target_ids: int `[batch, masked]`, the original tokens.
        num_negatives: Number of tokens to draw, less than the vocabulary's.
        seed: A `keras.random.SeedGenerator`.

    Returns:
        int32 `[batch, masked, num_negatives]`, in the order of the draws.
    """
    return active().sample_others(logits, target_ids, num_negatives, seed)


def hardest_negatives(logits, target_ids, num_negatives):
    """Returns the likeliest tokens per position, the original left out.

    Args:
        logits: `[batch, masked, vocabulary]`.
        target_ids: int `[batch, masked]`, the original tokens.
        num_negatives: Number of tokens, less than the vocabulary's.

    Returns:
        int32 `[batch, masked, num_negatives]`, the likeliest first.

    >>> import numpy as np
    >>> logits = np.array([[[0.1, 0.9, 0.5, 0.7]]])
    >>> np.array(hardest_negatives(logits, np.array([[1]]), 2)).tolist()
    [[[3, 2]]]
    """
    return likeliest_others(ops.stop_gradient(logits), target_ids, num_negatives)
