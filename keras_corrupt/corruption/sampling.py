"""Sampling of tokens from a generator's output distribution."""

import keras
import numpy as np
from keras import ops

from keras_corrupt.devices.guests import replaceable

#: Tokens whose probabilities are added up before one of them is drawn.
BLOCK = 256


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
    shape = (*ops.shape(logits)[:-1], 2)
    uniform = keras.random.uniform(shape, dtype="float32", seed=seed)
    return draw_tokens(ops.stop_gradient(logits), uniform)


def draw_tokens(logits, uniform):
    """Draws tokens by two random numbers each.

    By the inverse of the cumulative distribution: first a block of tokens is drawn,
    then one of its tokens, so that rare tokens have their share in float32, too.

    Args:
        logits: `[..., vocabulary]`.
        uniform: float32 `[..., 2]`, from 0 to 1.

    Returns:
        int32 `[...]`.

    >>> import numpy as np
    >>> logits = np.log([0.2, 0.5, 0.3]).astype("float32")
    >>> [int(draw_tokens(logits, np.array([0, u], "float32"))) for u in (0.1, 0.6, 0.9)]
    [0, 1, 2]
    """
    logits = ops.cast(logits, "float32")
    rest = [(0, 0)] * (len(logits.shape) - 1) + [(0, -logits.shape[-1] % BLOCK)]
    logits = logits - ops.max(logits, axis=-1, keepdims=True)
    logits = ops.pad(logits, rest, constant_values=-np.inf)
    blocks = ops.reshape(logits, (*ops.shape(logits)[:-1], -1, BLOCK))
    block = _draw(ops.sum(ops.exp(blocks), axis=-1), uniform[..., 0])
    chosen = ops.take_along_axis(blocks, block[..., None, None], axis=-2)
    return block * BLOCK + _draw(ops.exp(chosen[..., 0, :]), uniform[..., 1])


def _draw(weights, uniform):
    """Draws an index with the probabilities of the weights on the last axis."""
    cumulative = ops.cumsum(weights, axis=-1)
    total = cumulative[..., -1:]
    passed = ops.sum(ops.cast(cumulative <= uniform[..., None] * total, "int32"), -1)
    # Rounding may lead past the last index that has a weight.
    last = ops.sum(ops.cast(cumulative < total, "int32"), -1)
    return ops.minimum(passed, last)


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
    uniform = keras.random.uniform(ops.shape(logits), seed=seed, dtype="float32")
    # Uniform draws may be 0, whose logarithm is infinite.
    gumbel = -ops.log(-ops.log(ops.maximum(uniform, 1e-30)))
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
