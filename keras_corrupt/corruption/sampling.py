"""Sampling of tokens from a generator's output distribution."""

import keras
from keras import ops


def sample_tokens(logits, seed):
    """Draws one token per position from the softmax of its logits, exactly.

    No gradient flows through the draw.

    Args:
        logits: `[batch, masked, vocabulary]`.
        seed: A `keras.random.SeedGenerator`.

    Returns:
        int32 `[batch, masked]`.
    """
    vocabulary_size = logits.shape[-1]
    rows = ops.cast(ops.stop_gradient(logits), "float32")
    rows = ops.reshape(rows, (-1, vocabulary_size))
    sample = keras.random.categorical(rows, 1, dtype="int32", seed=seed)
    # Logits that are not numbers make TensorFlow draw an id past the end; the loss
    # will tell, if the embedding does not fail first.
    sample = ops.minimum(sample, vocabulary_size - 1)
    return ops.reshape(sample, (-1, logits.shape[1]))
