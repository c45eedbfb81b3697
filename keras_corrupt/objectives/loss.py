"""What a model's loss is made of: weighted means, and what layers add."""

from collections.abc import Mapping

import numpy as np
from keras import ops

from keras_corrupt.devices.replicas import replica_share, sum_over_replicas


def weighted_mean(values, weights, total=None):
    """Mean of `values` weighted by `weights`; 0 where no weight is positive.

    A replica's is its part of the mean over the whole batch: replicas differ in the
    weight that they hold, so that a mean of their means would be another one. So it is
    of a micro-batch, if `total` is the weight of all.
    """
    values = ops.cast(values, "float32")
    weights = ops.cast(weights, "float32")
    if total is None:
        total = sum_over_replicas(ops.sum(weights))
    return ops.sum(values * weights) / ops.where(total > 0, total, 1.0)


def of_sequences(weights, sample_weight):
    """Multiplies weights `[batch, ...]` by whole sequences' weights, if there are any.

    Raises:
        ValueError: `sample_weight` is not one number for each sequence.
    """
    if sample_weight is None:
        return weights
    if any(size != 1 for size in sample_weight.shape[1:]):
        raise ValueError(
            "`sample_weight` must be one number for each sequence, `[batch]`; got the "
            f"shape {tuple(sample_weight.shape)}."
        )
    shape = (-1, *(1 for _ in weights.shape[1:]))
    return ops.cast(weights, "float32") * ops.reshape(sample_weight, shape)


def added_losses(model):
    """Adds up what layers add to a model's loss: regularizers and `add_loss`."""
    return sum(replica_share(loss) for loss in model.losses)


def check_weight(name, weight):
    """Raises a `ValueError` unless a loss's weight is a number of 0 or more."""
    if isinstance(weight, str) or not weight >= 0:
        raise ValueError(f"`{name}` must be at least 0; got {weight!r}.")


def with_weights(x, sample_weight):
    """Puts weights of sequences into the inputs: Keras drops them without targets."""
    if sample_weight is None:
        return x
    inputs = x if isinstance(x, Mapping) else {"token_ids": x}
    return {**inputs, "sample_weight": np.asarray(sample_weight, "float32")}
