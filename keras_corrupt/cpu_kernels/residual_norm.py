"""Dropout, residual and layer norm."""

import numpy as np
import tensorflow as tf
from keras import ops

from keras_corrupt.cpu_kernels.compiling import compiled
from keras_corrupt.cpu_kernels.numbers import (
    F,
    dropout_of,
    dropped,
    load,
    rows,
    store,
)
from keras_corrupt.cpu_kernels.program import float32, key_of, like, run


def residual_norm(x, y, bias, gamma, beta, epsilon, rate=0.0, seed=None):
    """Layer norm of `x + dropout(y + bias)`.

    Args:
        x: `[batch, length, hidden]`.
        y: `[batch, length, hidden]`.
        bias: `[hidden]`.
        gamma: `[hidden]`, the norm's factor.
        beta: `[hidden]`, the norm's shift.
        epsilon: Added to the variance.
        rate: Dropout rate.
        seed: A `keras.random.SeedGenerator`, for a positive rate.

    Returns:
        A tensor like `x`.
    """
    key = key_of(seed)

    @tf.custom_gradient
    def f(x, y, bias, gamma, beta):
        vectors = float32(bias, gamma, beta)
        scales = ops.shape(x)[:2], tf.float32
        z, normal, scale = run(
            _forward,
            [x, y],
            [like(x), like(x), scales],
            *vectors,
            key,
            *float32(epsilon, rate),
        )

        def gradient(dz):
            dz = tf.convert_to_tensor(dz)  # where rows were gathered, it is sparse
            dx, dy, sums = run(
                _backward,
                [dz, normal, scale],
                [like(x), like(y)],
                vectors[1],
                key,
                *float32(rate),
                sums=(3, x.shape[-1]),
            )
            dbias, dgamma, dbeta = tf.unstack(sums)
            return (
                dx,
                dy,
                tf.cast(dbias, bias.dtype),
                tf.cast(dgamma, gamma.dtype),
                tf.cast(dbeta, beta.dtype),
            )

        return z, gradient

    return f(x, y, *map(tf.convert_to_tensor, (bias, gamma, beta)))


@compiled
def _forward(first, x, y, out, normal, scale, bias, gamma, beta, key, epsilon, rate):
    dropout = dropout_of(key, rate)
    start = first * x[0].size
    x, y, out, normal, scale = rows(x), rows(y), rows(out), rows(normal), scale.ravel()
    size = F(len(bias))
    z = np.empty(len(bias), F)
    for i in range(len(x)):
        mean = square = F(0.0)
        for j in range(len(bias)):
            v = dropped(load(y[i, j]) + bias[j], start + j, dropout)
            z[j] = v + load(x[i, j])
            mean += z[j]
        mean /= size
        for j in range(len(bias)):
            z[j] -= mean
            square += z[j] * z[j]
        scale[i] = F(1.0) / np.sqrt(square / size + epsilon)
        for j in range(len(bias)):
            z[j] *= scale[i]
            store(normal, (i, j), z[j])
        for j in range(len(bias)):
            store(out, (i, j), z[j] * gamma[j] + beta[j])
        start += len(bias)


@compiled
def _backward(first, dz, normal, scale, dx, dy, sums, gamma, key, rate):
    dropout = dropout_of(key, rate)
    start = first * dz[0].size
    dz, normal, scale, dx, dy = (
        rows(dz),
        rows(normal),
        scale.ravel(),
        rows(dx),
        rows(dy),
    )
    size = F(len(gamma))
    sums[:] = F(0.0)
    sums = sums.reshape(3, -1)
    dbias, dgamma, dbeta = sums[0], sums[1], sums[2]
    z = np.empty(len(gamma), F)
    for i in range(len(dz)):
        mean = along = F(0.0)
        for j in range(len(gamma)):
            d, u = load(dz[i, j]), load(normal[i, j])
            dgamma[j] += d * u
            dbeta[j] += d
            z[j] = d * gamma[j]
            mean += z[j]
            along += z[j] * u
        mean /= size
        along /= size
        for j in range(len(gamma)):
            z[j] = scale[i] * (z[j] - mean - load(normal[i, j]) * along)
            store(dx, (i, j), z[j])
        for j in range(len(gamma)):
            z[j] = dropped(z[j], start + j, dropout)
            store(dy, (i, j), z[j])
            dbias[j] += z[j]
        start += len(gamma)
