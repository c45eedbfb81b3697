"""What the replicas of a training step owe each other.

Under a TensorFlow strategy each device runs the step on its share of the batch. Keras
leaves three things to each replica alone that concern the whole batch: the weights
that a mean is divided by, the gradient before it is clipped, and the state of the
random number generators, which would make all replicas draw the same. On JAX one step
spans all devices, and on one device there is one replica; there all this is nothing.
"""

import keras
from keras import ops

from keras_corrupt.devices import hardware_random, hashed_random


def _replica():
    """Returns this replica's context, or `None` where there is no other replica."""
    if keras.backend.backend() != "tensorflow":
        return None
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    return context if context and context.num_replicas_in_sync > 1 else None


def sum_over_replicas(tensors):
    """Adds up over all replicas a tensor, or each of a list. No gradient flows."""
    replica = _replica()
    if replica is None:
        return tensors
    return replica.all_reduce("SUM", tensors)


def gather_from_replicas(tensor):
    """Puts the rows of all replicas one below the other, in the replicas' order.

    Gradients flow back to a row's replica from all replicas: a row that is contrasted
    with the whole batch learns from the whole batch.

    Args:
        tensor: `[batch, ...]`, this replica's rows.

    Returns:
        `[batch of all replicas, ...]`.
    """
    replica = _replica()
    if replica is None:
        return tensor
    return replica.all_gather(tensor, axis=0)


def first_row_of_replica(rows):
    """Returns where this replica's rows begin among all replicas' rows.

    Args:
        rows: Int or int32 scalar. The rows that this replica has.

    Returns:
        int32 scalar, an index into what `gather_from_replicas` returns.
    """
    replica = _replica()
    if replica is None:
        return 0
    numbers = replica.all_gather(ops.cast(ops.stack([rows]), "int32"), axis=0)
    before = ops.arange(replica.num_replicas_in_sync) < replica.replica_id_in_sync_group
    return ops.sum(ops.where(before, numbers, 0))


def replica_loss(part):
    """Returns a replica's loss as Keras counts it.

    Keras adds up the gradients of all replicas, and reports each replica's loss times
    the number of replicas.

    Args:
        part: Scalar, what this replica adds to the loss of the whole batch.

    Returns:
        A scalar with the gradient of `part`, and the value of the whole batch's loss
        divided by the number of replicas, on every replica.
    """
    replica = _replica()
    if replica is None:
        return part
    value = ops.stop_gradient(part)
    share = sum_over_replicas(value) / replica.num_replicas_in_sync
    return part + (share - value)


def replica_share(value):
    """Returns a replica's part of a scalar of which every replica has the whole."""
    replica = _replica()
    return value if replica is None else value / replica.num_replicas_in_sync


def repeat(count, body, state):
    """Applies `state = body(number, state)` for each number below `count`.

    One call ends before the next begins, so that their memory is not needed at once.

    Args:
        count: Int.
        body: Function of an int scalar and of the state.
        state: A structure of tensors.
    """
    if keras.backend.backend() == "jax":
        import jax

        return jax.lax.fori_loop(0, count, body, state)
    import tensorflow as tf

    if _replica() is None:
        _, state = tf.while_loop(
            lambda number, _: number < count,
            lambda number, state: (number + 1, body(number, state)),
            (tf.constant(0), state),
            parallel_iterations=1,
        )
        return state
    # Replicas cannot meet within a loop of TensorFlow.
    for number in range(count):
        with tf.control_dependencies(tf.nest.flatten(state)):
            state = body(number, state)
    return state


class SeedGenerator(keras.random.SeedGenerator):
    """Seeds that differ between replicas; the first replica's seeds are Keras's.

    On JAX there is one replica; on GPUs and TPUs they are `hardware_random`'s keys.
    """

    def next(self, ordered=True):
        seed = super().next(ordered)
        if hardware_random.is_used():
            return hardware_random.key_of(seed)
        replica = _replica()
        if replica is None:
            return seed
        number = ops.cast(replica.replica_id_in_sync_group, seed.dtype)
        # Far steps, because the generators of a model may have neighbouring seeds.
        return seed + number * 0x9E3779B1 * ops.array([1, 0], seed.dtype)


class DrawnSeed(keras.random.SeedGenerator):
    """A seed that was drawn before: a second computation draws the same numbers.

    Args:
        seed: What the `next` of a `SeedGenerator` returned.
    """

    def __init__(self, seed):  # It has no state, as Keras's would make one.
        self.seed = seed

    def next(self, ordered=True):
        return self.seed


class Dropout(keras.layers.Layer):
    """Zeroes a fraction of its input; which, differs between replicas.

    Args:
        rate: The fraction.
    """

    def __init__(self, rate, **kwargs):
        super().__init__(**kwargs)
        self.rate = rate
        if rate > 0:
            self.seed_generator = SeedGenerator()
        self.built = True

    def draw(self, training):
        """Returns the `DrawnSeed` of one call, or `None` where nothing is drawn."""
        if not training or not self.rate:
            return None
        return DrawnSeed(self.seed_generator.next())

    def call(self, x, training=False, seed=None):
        """Drops numbers of `x`, by a seed of `draw` if one is given."""
        if not training or not self.rate:
            return x
        seed = seed or self.seed_generator
        if keras.backend.backend() == "jax":
            seed = hardware_random.seed_of(seed.next())
            return hashed_random.dropped(x, self.rate, seed)
        return keras.random.dropout(x, self.rate, seed=seed)

    def get_config(self):
        return {**super().get_config(), "rate": self.rate}
