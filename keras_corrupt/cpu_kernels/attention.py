"""Multi-head attention without its projections."""

import numpy as np
import tensorflow as tf
from keras import ops

from keras_corrupt.cpu_kernels.compiling import compiled
from keras_corrupt.cpu_kernels.numbers import (
    F,
    dropout_of,
    dropped,
    exp,
    largest,
    load,
    rows,
    store,
)
from keras_corrupt.cpu_kernels.program import float32, key_of, like, run


def attention(projected, bias, num_heads, mask, logits_bias=None, rate=0.0, seed=None):
    """Multi-head attention between its projections (Vaswani et al., 2017, 3.2).

    Args:
        projected: `[batch, length, 3 * hidden]`: query, key and value side by side.
        bias: `[3 * hidden]`, added to them.
        num_heads: Number of heads; divides `hidden`.
        mask: Boolean, broadcastable to `[batch, heads, length, length]`.
        logits_bias: `None`, or a term of the scaled logits, broadcastable likewise.
        rate: Dropout rate of the attention weights.
        seed: A `keras.random.SeedGenerator`, for a positive rate.

    Returns:
        `[batch, length, hidden]`.
    """
    query, key, value = split_heads(projected, bias, num_heads)
    logits = tf.matmul(query, key, transpose_b=True)
    scale = query.shape[-1] ** -0.5
    context = weigh(logits, value, scale, mask, logits_bias, rate, seed)
    context = tf.transpose(context, (0, 2, 1, 3))
    return tf.reshape(context, (*ops.shape(projected)[:2], projected.shape[-1] // 3))


def split_heads(projected, bias, num_heads):
    """Adds the bias; returns query, key and value, `[batch, heads, length, size]`."""

    @tf.custom_gradient
    def f(projected, bias):
        batch, length, width = ops.shape(projected)
        shape = batch, num_heads, length, width // (3 * num_heads)

        def gradient(*parts):
            dx, sums = run(_split_backward, parts, [like(projected)], sums=bias.shape)
            return dx, tf.cast(sums, bias.dtype)

        outputs = [(shape, projected.dtype)] * 3
        return run(_split_forward, [projected], outputs, *float32(bias)), gradient

    return f(projected, tf.convert_to_tensor(bias))


def weigh(logits, value, scale, mask, bias, rate, seed):
    """Softmax of the scaled logits over the allowed keys, dropout, sums of the values.

    Only the softmax is kept; dropout is done again going back.
    """
    key = key_of(seed)
    if bias is None:
        unseen = tf.where(mask, 0.0, -1e9) + tf.zeros((1, 1, 1, tf.shape(logits)[-1]))
    else:
        biased = tf.where(mask, tf.cast(bias, tf.float32), -1e9)
        unseen = tf.broadcast_to(biased, tf.shape(logits))

    @tf.custom_gradient
    def f(logits, value, unseen):
        outputs = [like(logits), like(logits)]
        weights, softmax = run(
            _weights_forward, [logits], outputs, unseen, key, *float32(scale, rate)
        )

        def gradient(dcontext):
            dlogits, weights = run(
                _weights_backward,
                [tf.matmul(dcontext, value, transpose_b=True), softmax],
                outputs,
                key,
                *float32(scale, rate),
            )
            dvalue = tf.matmul(weights, dcontext, transpose_a=True)
            dbias = None if bias is None else tf.cast(dlogits, tf.float32) / scale
            return dlogits, dvalue, dbias

        return tf.matmul(weights, value), gradient

    return f(logits, value, unseen)


@compiled
def _split_forward(first, x, query, key, value, bias):
    for b in range(len(x)):
        _split(x[b], query[b], bias, 0)
        _split(x[b], key[b], bias, 1)
        _split(x[b], value[b], bias, 2)


@compiled
def _split(x, out, bias, part):
    heads, length, size = out.shape
    for h in range(heads):
        start = (part * heads + h) * size
        shift = bias[start : start + size]
        for i in range(length):
            a, b = x[i, start : start + size], out[h, i]
            for j in range(size):
                store(b, j, load(a[j]) + shift[j])


@compiled
def _split_backward(first, query, key, value, dx, dbias):
    dbias[:] = F(0.0)
    for b in range(len(dx)):
        _join(query[b], dx[b], dbias[0], 0)
        _join(key[b], dx[b], dbias[0], 1)
        _join(value[b], dx[b], dbias[0], 2)


@compiled
def _join(x, out, sums, part):
    heads, length, size = x.shape
    for h in range(heads):
        start = (part * heads + h) * size
        total = sums[start : start + size]
        for i in range(length):
            a, b = x[h, i], out[i, start : start + size]
            for j in range(size):
                b[j] = a[j]
            for j in range(size):
                total[j] += load(a[j])


@compiled
def _weights_forward(first, logits, weights, softmax, unseen, key, scale, rate):
    dropout = dropout_of(key, rate)
    _, heads, queries, keys = logits.shape
    masks = unseen.shape
    z = np.empty(keys, F)
    start = first * logits[0].size
    for b in range(len(logits)):
        for h in range(heads):
            for i in range(queries):
                m, n, k = (first + b) % masks[0], h % masks[1], i % masks[2]
                for j in range(keys):
                    z[j] = load(logits[b, h, i, j]) * scale + unseen[m, n, k, j]
                maximum, total = largest(z), F(0.0)
                for j in range(keys):
                    z[j] = exp(z[j] - maximum)
                    total += z[j]
                for j in range(keys):
                    z[j] /= total
                    store(softmax, (b, h, i, j), z[j])
                for j in range(keys):
                    store(weights, (b, h, i, j), dropped(z[j], start + j, dropout))
                start += keys


@compiled
def _weights_backward(first, dy, softmax, dx, weights, key, scale, rate):
    dropout = dropout_of(key, rate)
    z = np.empty(dy.shape[-1], F)
    start = first * dy[0].size
    dy, softmax, dx, weights = rows(dy), rows(softmax), rows(dx), rows(weights)
    for i in range(len(dy)):
        along = F(0.0)
        for j in range(len(z)):
            share = load(softmax[i, j])
            store(weights, (i, j), dropped(share, start + j, dropout))
            z[j] = dropped(load(dy[i, j]), start + j, dropout)
            along += z[j] * share
        for j in range(len(z)):
            store(dx, (i, j), scale * load(softmax[i, j]) * (z[j] - along))
        start += len(z)
