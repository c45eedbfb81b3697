"""A generator without a network: it draws each token as often as the corpus has it."""

import keras
import numpy as np
from keras import ops

from keras_corrupt.devices import hashed_random
from keras_corrupt.heads.softmax import draw_by_weights


class UnigramGenerator(keras.layers.Layer):
    """Draws tokens from the same distribution everywhere (Clark's thesis, 5.3.2).

    Its counts are a weight that is not trained, so that presets and checkpoints have
    them.

    Args:
        vocabulary_size: Number of token ids.
        uniform: Whether all tokens are as likely. Otherwise none is, until `counts` is
            assigned.
    """

    def __init__(self, vocabulary_size, uniform=False, **kwargs):
        super().__init__(**kwargs)
        self.counts = self.add_weight(
            shape=(vocabulary_size,),
            initializer="ones" if uniform else "zeros",
            dtype="float32",
            trainable=False,
            autocast=False,  # bfloat16 would round the counts
            name="counts",
        )
        self.built = True

    def build(self, input_shape=None):
        self.built = True

    def sample(self, positions, seed):
        """Draws a token for each position; no gradient flows.

        Args:
            positions: int32 `[batch, masked]`.
            seed: A `keras.random.SeedGenerator`.

        Returns:
            int32 `[batch, masked]`.
        """
        drawn = hashed_random.uniform((*ops.shape(positions), 2), seed)
        return draw_by_weights(ops.convert_to_tensor(self.counts), drawn)

    def has_counts(self):
        """Returns whether any token can be drawn."""
        return bool(np.any(ops.convert_to_numpy(self.counts)))
