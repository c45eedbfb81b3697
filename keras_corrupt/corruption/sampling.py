"""Sampling of tokens from a generator's output distribution."""

import keras
import numpy as np
from keras import ops

from keras_corrupt.devices.guests import replaceable
from keras_corrupt.devices.hashed_random import uniform
from keras_corrupt.heads.softmax import draw


@replaceable
def sample_tokens(logits, seed):
    """Draws one token per position from the softmax of its logits, exactly.

    No gradient flows through the draw.

    Args:
        logits: `[batch, masked, vocabulary]`.
        seed: A `keras.random.SeedGenerator`.

    Returns:
        int32 `[batch, masked]`.
    """
    if keras.backend.backend() == "jax":
        # JAX's own `categorical` draws a random number for each word.
        drawn = uniform((*ops.shape(logits)[:-1], 2), seed)
        return draw(ops.stop_gradient(logits), drawn)
    rows = ops.reshape(ops.cast(logits, "float32"), (-1, logits.shape[-1]))
    ids = keras.random.categorical(rows, 1, dtype="int32", seed=seed)
    # Logits that are not numbers make TensorFlow draw an id past the end; the loss
    # will tell, if the embedding does not fail first.
    ids = ops.minimum(ids, logits.shape[-1] - 1)
    return ops.reshape(ids, ops.shape(logits)[:-1])


@replaceable
def sample_negatives(logits, target_ids, num_negatives, seed):
    """Draws different tokens per position from the softmax, never the original.

    The draws are successive: each is from the softmax over the tokens that are left.
    That is the distribution of the largest sums of logits and Gumbel noise (Kool et
    al., 2019). No gradient flows through them.

    Args:
        logits: `[batch, masked, vocabulary]`.
        target_ids: int `[batch, masked]`, the original tokens.
        num_negatives: Number of tokens to draw, less than the vocabulary's.
        seed: A `keras.random.SeedGenerator`.

    Returns:
        int32 `[batch, masked, num_negatives]`, in the order of the draws.
    """
    drawn = uniform(ops.shape(logits), seed)
    # Draws may be 0, whose logarithm is infinite.
    gumbel = -ops.log(-ops.log(ops.maximum(drawn, 1e-30)))
    noisy = ops.cast(logits, "float32") + gumbel
    return hardest_negatives(noisy, target_ids, num_negatives)


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
    token_ids = ops.arange(logits.shape[-1], dtype="int32")
    is_original = token_ids == ops.cast(target_ids, "int32")[..., None]
    others = ops.where(is_original, -np.inf, ops.stop_gradient(logits))
    return ops.cast(ops.top_k(others, num_negatives)[1], "int32")
