"""Noise on embeddings."""

from keras import ops


def with_noise(x, noise, padding_mask):
    """Returns embeddings with noise in units of their standard deviations.

    Those of each dimension, over the batch's tokens: noise of a norm changes embeddings
    of any size as much as it does normalised ones (Miyato et al., 2017, 2).

    Args:
        x: `[batch, length, size]`.
        noise: float32, as `x`.
        padding_mask: `[batch, length]`, 1 for tokens and 0 for padding.
    """
    real = ops.cast(padding_mask, "float32")[..., None]
    share = real / ops.maximum(ops.sum(real), 1.0)
    values = ops.stop_gradient(ops.cast(x, "float32"))
    mean = ops.sum(values * share, axis=(0, 1))
    variance = ops.sum(ops.square(values - mean) * share, axis=(0, 1))
    return x + ops.cast(noise * ops.sqrt(variance), x.dtype)
