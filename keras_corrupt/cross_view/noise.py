"""Noise on embeddings and images, and that which changes predictions most."""

import keras
from keras import ops


def adversarial_noise(divergence, start, norm):
    """Returns noise of a norm, in the direction that changes predictions most.

    One step of the power method (Miyato et al., 2017, 3): the gradient of the
    divergence, at a small noise.

    Args:
        divergence: Function of noise that returns by how much it changes predictions,
            or that but for a constant.
        start: Random noise, `[batch, ...]`.
        norm: Norm of the returned noise, of each sentence or image.
    """
    gradient = gradient_at(divergence, of_norm(start, 0.1))
    return of_norm(ops.stop_gradient(gradient), norm)


def of_norm(x, norm):
    """Returns each sentence's array, `[batch, length, size]`, or image, at a norm."""
    x = ops.cast(x, "float32")
    squares = ops.sum(ops.square(x), axis=tuple(range(1, x.ndim)), keepdims=True)
    return norm * x * ops.rsqrt(ops.maximum(squares, 1e-24))


def gradient_at(function, x):
    """Returns the gradient of a scalar function of an array."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            tape.watch(x)
            value = function(x)
        return tape.gradient(value, x)
    import jax

    return jax.grad(function)(x)


def with_noise(x, noise, padding_mask):
    """Returns embeddings with noise in units of their standard deviations.

    Each dimension has one, over the batch's tokens: noise of a norm changes embeddings
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
