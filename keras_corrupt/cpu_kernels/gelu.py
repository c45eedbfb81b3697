"""Bias and gelu, and the product that follows."""

import math

import tensorflow as tf
from keras import ops

from keras_corrupt.cpu_kernels.compiling import compiled
from keras_corrupt.cpu_kernels.numbers import (
    F,
    exp,
    load,
    rows,
    store,
)
from keras_corrupt.cpu_kernels.program import float32, like, run


def bias_gelu(x, bias, approximate=False):
    """Gelu of `x + bias`.

    Args:
        x: `[..., hidden]`.
        bias: `[hidden]`.
        approximate: Whether to use gelu's tanh approximation.

    Returns:
        A tensor like `x`.
    """

    @tf.custom_gradient
    def f(x, bias):
        def gradient(dy):
            return _gradient(x, bias, dy, approximate)[:2]

        return _value(x, bias, approximate), gradient

    return f(x, tf.convert_to_tensor(bias))


def bias_gelu_matmul(x, bias, kernel, approximate=False):
    """The product of `bias_gelu` and a matrix, `[hidden, width]`.

    Gelu is not kept, but taken again going back.
    """

    @tf.custom_gradient
    def f(x, bias, kernel):
        def gradient(dz):
            dz = tf.reshape(dz, (-1, dz.shape[-1]))
            dy = tf.reshape(tf.matmul(dz, kernel, transpose_b=True), tf.shape(x))
            dx, dbias, y = _gradient(x, bias, dy, approximate)
            y = tf.reshape(y, (-1, y.shape[-1]))
            return dx, dbias, tf.matmul(y, dz, transpose_a=True)

        return ops.matmul(_value(x, bias, approximate), kernel), gradient

    return f(x, *map(tf.convert_to_tensor, (bias, kernel)))


def _value(x, bias, approximate):
    forward = _logistic_forward if approximate else _normal_forward
    return run(forward, [x], [like(x)], *float32(bias))[0]


def _gradient(x, bias, dy, approximate):
    """Returns the gradients of `x` and of the bias, and the value."""
    backward = _logistic_backward if approximate else _normal_backward
    outputs = [like(x), like(x)]
    dx, y, sums = run(backward, [x, dy], outputs, *float32(bias), sums=bias.shape)
    return dx, tf.cast(sums, bias.dtype), y


@compiled
def _normal_distribution(y):
    """Phi and its derivative, to 1e-7 (Abramowitz and Stegun, 1964, 7.1.26)."""
    e = exp(F(-0.5) * y * y)
    t = F(1.0) / (F(1.0) + F(0.3275911 / math.sqrt(2.0)) * abs(y))
    p = F(1.421413741) + t * (F(-1.453152027) + t * F(1.061405429))
    above = F(0.5) * e * t * (F(0.254829592) + t * (F(-0.284496736) + t * p))
    below = above if y < F(0.0) else F(1.0) - above
    return below, e * F(1.0 / math.sqrt(2.0 * math.pi))


@compiled
def _logistic_distribution(y):
    """The stand-in for Phi with which gelu is 'approximate', and its derivative."""
    c, a = F(math.sqrt(8.0 / math.pi)), F(0.044715)
    below = F(1.0) / (F(1.0) + exp(-c * (y + a * y * y * y)))
    return below, below * (F(1.0) - below) * c * (F(1.0) + F(3.0) * a * y * y)


# Each pass twice: with a branch in the loop there are no vector instructions.


@compiled
def _normal_forward(first, x, out, bias):
    x, out = rows(x), rows(out)
    for i in range(len(x)):
        for j in range(len(bias)):
            y = load(x[i, j]) + bias[j]
            store(out, (i, j), y * _normal_distribution(y)[0])


@compiled
def _logistic_forward(first, x, out, bias):
    x, out = rows(x), rows(out)
    for i in range(len(x)):
        for j in range(len(bias)):
            y = load(x[i, j]) + bias[j]
            store(out, (i, j), y * _logistic_distribution(y)[0])


@compiled
def _normal_backward(first, x, dy, dx, out, dbias, bias):
    x, dy, dx, out = rows(x), rows(dy), rows(dx), rows(out)
    dbias = dbias[0]
    dbias[:] = F(0.0)
    for i in range(len(x)):
        for j in range(len(bias)):
            y = load(x[i, j]) + bias[j]
            below, density = _normal_distribution(y)
            d = load(dy[i, j]) * (below + y * density)
            store(dx, (i, j), d)
            store(out, (i, j), y * below)
            dbias[j] += d


@compiled
def _logistic_backward(first, x, dy, dx, out, dbias, bias):
    x, dy, dx, out = rows(x), rows(dy), rows(dx), rows(out)
    dbias = dbias[0]
    dbias[:] = F(0.0)
    for i in range(len(x)):
        for j in range(len(bias)):
            y = load(x[i, j]) + bias[j]
            below, density = _logistic_distribution(y)
            d = load(dy[i, j]) * (below + y * density)
            store(dx, (i, j), d)
            store(out, (i, j), y * below)
            dbias[j] += d
