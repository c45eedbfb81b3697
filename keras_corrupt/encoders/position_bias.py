"""T5's relative positions, a bias of the attention logits (Raffel et al., 2020)."""

import math

import keras
import numpy as np
from keras import ops

from keras_corrupt.encoders.embeddings import initializer


class RelativePositionBias(keras.layers.Layer):
    """One learned number for each head and each bucket of distances.

    Half of the buckets are for keys before the query and the query itself, half for
    keys behind it. In each half, the first half of the buckets are one distance each;
    the others grow by a constant factor until `max_distance`, and the last one holds
    all that is farther away. All layers of an encoder use one table.

    Args:
        num_buckets: Number of buckets, a multiple of 4.
        max_distance: From this distance on, all are one.
        num_heads: Number of attention heads.
        initializer_range: Standard deviation of the initial weights.
        rounds_up: Whether the buckets that grow end at the distances at which T5's
            would begin, and the last one begins before `max_distance`, as in COCO-LM's
            released code.

    Raises:
        ValueError: The buckets cannot be divided so.

    Example:

    >>> bias = RelativePositionBias(num_buckets=32, max_distance=128, num_heads=4)
    >>> tuple(bias(length=10).shape)
    (1, 4, 10, 10)
    """

    def __init__(
        self,
        num_buckets,
        max_distance,
        num_heads,
        initializer_range=0.02,
        rounds_up=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if num_buckets < 4 or num_buckets % 4:
            raise ValueError(
                f"`num_buckets` must be a multiple of 4 (T5 has 32); got {num_buckets}."
            )
        if max_distance <= num_buckets // 4 + bool(rounds_up):
            raise ValueError(
                f"`max_distance` must be greater than num_buckets / 4 = "
                f"{num_buckets // 4}, the distances with a bucket of their own, and by "
                f"2 with `rounds_up`; got {max_distance}."
            )
        self.num_buckets = num_buckets
        self.max_distance = max_distance
        self.num_heads = num_heads
        self.initializer_range = initializer_range
        self.rounds_up = rounds_up

    def build(self, input_shape=None):
        # Not in bfloat16, in which the gradients of thousands of pairs of positions
        # would not add up.
        self.table = self.add_weight(
            shape=(self.num_buckets, self.num_heads),
            initializer=initializer(self.initializer_range),
            autocast=False,
            name="table",
        )

    def call(self, length):
        """Returns float32 `[1, heads, length, length]`, for each query and key."""
        positions = ops.arange(length, dtype="int32")
        distances = positions[None, :] - positions[:, None]  # key less query
        buckets = bucket_of(
            distances, self.num_buckets, self.max_distance, self.rounds_up
        )
        # A product, not a look-up: its gradient is dense, and fast everywhere.
        chosen = ops.one_hot(buckets, self.num_buckets, dtype="float32")
        return ops.transpose(ops.matmul(chosen, self.table), (2, 0, 1))[None]

    def activation_bytes(self, length):
        """Counts the bias and its gradient, in float32; all layers have them once."""
        return 2 * self.num_heads * length**2 * 4

    def get_config(self):
        return {
            **super().get_config(),
            "num_buckets": self.num_buckets,
            "max_distance": self.max_distance,
            "num_heads": self.num_heads,
            "initializer_range": self.initializer_range,
            "rounds_up": self.rounds_up,
        }


def bucket_of(distances, num_buckets, max_distance, rounds_up=False):
    """Returns T5's bucket of each signed distance, as T5's encoder has it.

    Args:
        distances: int32, positions of keys less positions of queries.
        num_buckets: Number of buckets.
        max_distance: From this distance on, all are one.
        rounds_up: See `RelativePositionBias`.

    Returns:
        int32 like `distances`.

    >>> import numpy as np
    >>> np.array(bucket_of(np.array([-9, -1, 0, 1, 8, 500]), 32, 128)).tolist()
    [8, 1, 0, 17, 24, 31]
    """
    half, exact = num_buckets // 2, num_buckets // 4
    # By NumPy, for all distances that differ: backends don't round logarithms alike.
    far = np.arange(exact, max_distance + 1)
    if rounds_up:
        last = math.log((max_distance - 1) / exact)
        steps = np.ceil(np.log(far / exact) / last * (half - 1 - exact))
    else:
        steps = np.log(far / exact) / math.log(max_distance / exact) * (half - exact)
    buckets = np.concatenate([np.arange(exact), exact + steps.astype("int32")])
    buckets = ops.convert_to_tensor(np.minimum(buckets, half - 1), "int32")
    size = ops.minimum(ops.absolute(distances), max_distance)
    return ops.take(buckets, size) + half * ops.cast(distances > 0, "int32")
