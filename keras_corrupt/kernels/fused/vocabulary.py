"""Loss and samples at the vocabulary's logits."""

import math

import numpy as np
import tensorflow as tf
from keras import ops

from keras_corrupt.kernels.fused.numbers import (
    F,
    compiled,
    exp,
    largest,
    load,
    random_bits,
    rows,
    store,
)
from keras_corrupt.kernels.fused.program import float32, key_of, like, run


def output_logits(products, bias):
    """As `plain.output_logits`."""

    @tf.custom_gradient
    def f(products, bias):
        def gradient(dy):
            dx, sums = run(_bias_backward, [dy], [like(products)], sums=bias.shape)
            return dx, tf.cast(sums, bias.dtype)

        outputs = [(ops.shape(products), tf.float32)]
        return run(_bias_forward, [products], outputs, *float32(bias))[0], gradient

    return f(products, tf.convert_to_tensor(bias))


def likeliest(logits):
    """As `plain.likeliest`."""
    return run(_likeliest, [logits], [(ops.shape(logits)[:-1], tf.int32)])[0]


def cross_entropy(logits, target_ids):
    """As `plain.cross_entropy`; a target that is no token has no number as loss."""
    target_ids = tf.cast(target_ids, tf.int32)
    shape, vocabulary_size = ops.shape(target_ids), logits.shape[-1]
    target_ids = tf.reshape(target_ids, (-1,))

    @tf.custom_gradient
    def f(logits):
        each = ops.shape(target_ids), tf.float32
        loss, total = run(_forward, [logits, target_ids], [each, each])

        def gradient(dy):
            (dx,) = run(_backward, [logits, target_ids, total, dy], [like(logits)])
            return dx

        return loss, gradient

    return tf.reshape(f(tf.reshape(logits, (-1, vocabulary_size))), shape)


def sample(logits, seed):
    """As `plain.sample`."""
    nothing = tf.zeros((tf.shape(logits)[0], 0), tf.int32)
    return _draw_from(logits, nothing, 1, seed)[:, 0]


def sample_others(logits, excluded_ids, count, seed):
    """As `plain.sample_others`."""
    excluded_ids = tf.cast(excluded_ids, tf.int32)[:, None]
    return _draw_from(logits, excluded_ids, count, seed)


def _draw_from(logits, excluded_ids, count, seed):
    ids = (ops.shape(logits)[0], count), tf.int32
    return run(_draw, [logits, excluded_ids], [ids], key_of(seed))[0]


#: Tokens whose probabilities are added up before one of them is drawn.
BLOCK = 256


@compiled
def _bias_forward(first, x, y, bias):
    x, y = rows(x), rows(y)
    for i in range(len(x)):
        for j in range(len(bias)):
            y[i, j] = load(x[i, j]) + bias[j]


@compiled
def _bias_backward(first, dy, dx, dbias):
    dy, dx, dbias = rows(dy), rows(dx), dbias[0]
    dbias[:] = F(0.0)
    for i in range(len(dy)):
        for j in range(len(dbias)):
            store(dx, (i, j), dy[i, j])
            dbias[j] += dy[i, j]


@compiled
def _likeliest(first, logits, out):
    logits, out = rows(logits), out.ravel()
    for i in range(len(logits)):
        maximum, found = largest(logits[i]), 0
        while found < logits.shape[1] - 1 and load(logits[i, found]) != maximum:
            found += 1
        out[i] = found


@compiled
def _forward(first, logits, target_ids, loss, total):
    for i in range(len(logits)):
        maximum = largest(logits[i])
        total[i] = maximum + math.log(_exp_sum(logits[i], maximum))
        known = 0 <= target_ids[i] < logits.shape[1]
        loss[i] = total[i] - load(logits[i, target_ids[i]]) if known else F(np.nan)


@compiled
def _exp_sum(row, maximum):
    total = F(0.0)
    for j in range(len(row)):
        total += exp(load(row[j]) - maximum)
    return total


@compiled
def _backward(first, logits, target_ids, total, dy, dx):
    for i in range(len(logits)):
        _scaled_softmax_row(logits[i], total[i], dy[i], dx[i])
        j = target_ids[i]
        if 0 <= j < logits.shape[1]:
            store(dx[i], j, dy[i] * (exp(load(logits[i, j]) - total[i]) - F(1.0)))


@compiled
def _scaled_softmax_row(logits, total, dy, dx):
    for j in range(len(logits)):
        store(dx, j, dy * exp(load(logits[j]) - total))


@compiled
def _draw(first, logits, excluded, out, key):
    size, count = logits.shape[1], out.shape[1]
    sums = np.empty((size + BLOCK - 1) // BLOCK, np.float64)
    taken = np.empty(excluded.shape[1] + count, np.int64)
    for i in range(len(logits)):
        row = logits[i]
        maximum = largest(row)
        for b in range(len(sums)):
            sums[b] = _exp_sum(row[b * BLOCK : (b + 1) * BLOCK], maximum)
        left_out = taken[: excluded.shape[1]]
        left_out[:] = excluded[i]
        for token in left_out:
            if 0 <= token < size:
                b = token // BLOCK
                sums[b] = _sum_of_rest(row, b, maximum, left_out)
        for k in range(count):
            total = sums.sum()
            if total < 1e-20:  # next to nothing is left of the softmax: magnify it
                maximum = _largest_of_rest(row, left_out)
                for b in range(len(sums)):
                    sums[b] = _sum_of_rest(row, b, maximum, left_out)
                total = sums.sum()
            n = 2 * ((first + i) * count + k)
            high, low = random_bits(n, key), random_bits(n + 1, key)
            point = (high * 2.0**-32 + low * 2.0**-64) * total
            token = _token_at(row, sums, maximum, left_out, point)
            out[i, k] = token
            left_out = taken[: len(left_out) + 1]
            left_out[-1] = token
            sums[token // BLOCK] = _sum_of_rest(row, token // BLOCK, maximum, left_out)


@compiled
def _token_at(row, sums, maximum, left_out, point):
    """The token at which the cumulative sum passes `point`."""
    b = 0
    while b < len(sums) - 1 and point >= sums[b]:
        point -= sums[b]
        b += 1
    while b > 0 and sums[b] == 0.0:  # rounding led past the last
        b -= 1
    found = -1
    for j in range(b * BLOCK, min((b + 1) * BLOCK, len(row))):
        p = exp(load(row[j]) - maximum)
        if p > F(0.0) and not _among(j, left_out):
            found = j
            point -= p
            if point < 0.0:
                break
    if found < 0:  # logits that are no numbers: any token, the loss will tell
        found = 0
        while _among(found, left_out):
            found += 1
    return found


@compiled
def _sum_of_rest(row, b, maximum, left_out):
    total = 0.0
    for j in range(b * BLOCK, min((b + 1) * BLOCK, len(row))):
        if not _among(j, left_out):
            total += exp(load(row[j]) - maximum)
    return total


@compiled
def _largest_of_rest(row, left_out):
    maximum = F(-np.inf)
    for j in range(len(row)):
        if not _among(j, left_out):
            maximum = max(maximum, load(row[j]))
    return maximum


@compiled
def _among(token, tokens):
    found = False
    for other in tokens:
        found |= token == other
    return found
