"""Rotary positions (Su et al., "RoFormer", 2021, section 3.2.2)."""

import keras
import numpy as np
from keras import ops

from keras_corrupt.encoders.cost import ROTARY_FLOPS


class RotaryPositions(keras.layers.Layer):
    """Turns queries and keys by angles that grow with their positions.

    Number i of a head's first half and number i of its second half are one point of a
    plane, which position p turns by `p * theta ** (-2 * i / size)`. So the product of
    a query and a key depends on their distance and not on their places. The paper pairs
    neighbours; pairs across the halves are the convention of GPT-NeoX and ModernBERT.

    Args:
        size: Width of a head, an even number.
        theta: Base of the angles. A larger base turns the slowest planes more slowly,
            which is for longer texts.

    Example:

    >>> rotary = RotaryPositions(size=2, theta=10_000)
    >>> x = np.array([[[[1.0, 0.0]], [[1.0, 0.0]]]])  # two tokens, one head
    >>> [round(float(n), 3) for n in rotary(x)[0, 1, 0]]  # turned by 1 radian
    [0.54, 0.841]
    """

    def __init__(self, size, theta, **kwargs):
        super().__init__(**kwargs)
        exponents = np.arange(0, size, 2, dtype="float32") / size
        self.frequencies = (float(theta) ** -exponents).astype("float32")
        self.built = True

    def call(self, x):
        """Returns `[batch, length, heads, size]`, of the same."""
        positions = ops.arange(ops.shape(x)[1], dtype="float32")
        angles = positions[:, None, None] * self.frequencies  # [length, 1, size / 2]
        cosine, sine = ops.cos(angles), ops.sin(angles)
        # In bfloat16 a distance of thousands of tokens would not be exact.
        first, second = ops.split(ops.cast(x, "float32"), 2, axis=-1)
        turned = (first * cosine - second * sine, second * cosine + first * sine)
        return ops.cast(ops.concatenate(turned, axis=-1), x.dtype)

    def flops(self, numbers):
        """Counts turning queries, or keys, of that many numbers."""
        return ROTARY_FLOPS * numbers
