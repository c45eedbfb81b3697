"""Loss and samples at the vocabulary's logits."""

import math

import numpy as np
import tensorflow as tf
from keras import ops

from keras_corrupt.cpu_kernels.compiling import compiled
from keras_corrupt.cpu_kernels.numbers import (
    F,
    exp,
    largest,
    load,
    random_bits,
    scrambled,
    store,
)
from keras_corrupt.cpu_kernels.program import float32, key_of, like, run
from keras_corrupt.heads import softmax


def output_logits(products, bias):
    """As `softmax.output_logits`.

    Logits in float32 are twice as large as the products, and are read often. The other
    kernels add the bias while they read the products; if nothing else reads the logits,
    they are never computed.
    """
    logits = softmax.output_logits.__wrapped__(products, bias)
    logits.products_and_bias = products, tf.convert_to_tensor(bias)
    return logits


def likeliest(logits):
    """As `softmax.likeliest`."""
    products, bias = _rows_and_bias(logits)
    ids = run(_likeliest, [products], [(ops.shape(products)[:1], tf.int32)], bias)[0]
    return tf.reshape(ids, ops.shape(logits)[:-1])


def cross_entropy(logits, target_ids):
    """As `softmax.cross_entropy`; a target that is no token has no number as loss."""
    products, bias = _rows_and_bias(logits)
    shape = ops.shape(target_ids)
    target_ids = tf.reshape(tf.cast(target_ids, tf.int32), (-1,))

    @tf.custom_gradient
    def f(products, bias):
        rows = ops.shape(target_ids), tf.float32
        loss, total = run(_forward, [products, target_ids], [rows, rows], bias)

        def gradient(dy):
            inputs = [products, target_ids, total, dy]
            return run(_backward, inputs, [like(products)], bias, sums=bias.shape)

        return loss, gradient

    return tf.reshape(f(products, bias), shape)


def cross_entropy_gradients(products, bias, target_ids, upstream):
    """As `softmax.cross_entropy_gradients`."""
    shape = ops.shape(products)
    products, bias = _rows_and_bias(output_logits(products, bias))
    target_ids = tf.reshape(tf.cast(target_ids, tf.int32), (-1,))
    rows = ops.shape(target_ids), tf.float32
    _, total = run(_forward, [products, target_ids], [rows, rows], bias)
    inputs = [products, target_ids, total, tf.reshape(upstream, (-1,))]
    gradients, sums = run(_backward, inputs, [like(products)], bias, sums=bias.shape)
    return tf.reshape(gradients, shape), sums


def sample_tokens(logits, seed):
    """As `corruption.sample_tokens`."""
    no_ids = tf.zeros((tf.size(logits) // logits.shape[-1], 0), tf.int32)
    return _draw_from(logits, no_ids, 1, seed)[..., 0]


def sample_negatives(logits, target_ids, num_negatives, seed):
    """As `corruption.sample_negatives`."""
    target_ids = tf.reshape(tf.cast(target_ids, tf.int32), (-1, 1))
    return _draw_from(logits, target_ids, num_negatives, seed)


def _draw_from(logits, excluded_ids, count, seed):
    products, bias = _rows_and_bias(logits)
    output = (ops.shape(products)[0], count), tf.int32
    (ids,) = run(_draw, [products, excluded_ids], [output], bias, key_of(seed))
    return tf.reshape(ids, (*ops.shape(logits)[:-1], count))


def _rows_and_bias(logits):
    """Returns `[rows, vocabulary]` and float32 `[vocabulary]`, whose sum they are."""
    size = logits.shape[-1]
    products, bias = getattr(logits, "products_and_bias", (logits, tf.zeros((size,))))
    return tf.reshape(products, (-1, size)), *float32(bias)


#: Tokens whose probabilities are added up before one of them is drawn.
BLOCK = 256


@compiled
def _row(products, bias, row):
    """Fills a float32 row of logits."""
    for j in range(len(row)):
        row[j] = load(products[j]) + bias[j]


@compiled
def _likeliest(first, products, out, bias):
    row = np.empty(len(bias), F)
    for i in range(len(products)):
        _row(products[i], bias, row)
        maximum, token = largest(row), 0
        while token < len(row) - 1 and row[token] != maximum:
            token += 1
        out[i] = token


@compiled
def _forward(first, products, target_ids, loss, total, bias):
    row = np.empty(len(bias), F)
    for i in range(len(products)):
        _row(products[i], bias, row)
        maximum = largest(row)
        total[i] = maximum + math.log(_exp_sum(row, maximum))
        valid = 0 <= target_ids[i] < len(row)
        loss[i] = total[i] - row[target_ids[i]] if valid else F(np.nan)


@compiled
def _exp_sum(row, maximum):
    total = F(0.0)
    for j in range(len(row)):
        total += exp(row[j] - maximum)
    return total


@compiled
def _backward(first, products, target_ids, total, dy, dx, dbias, bias):
    dbias[:] = F(0.0)
    row = np.empty(len(bias), F)
    for i in range(len(products)):
        _row(products[i], bias, row)
        for j in range(len(row)):
            row[j] = dy[i] * exp(row[j] - total[i])
        if 0 <= target_ids[i] < len(row):
            row[target_ids[i]] -= dy[i]
        for j in range(len(row)):
            store(dx, (i, j), row[j])
            dbias[0, j] += row[j]


@compiled
def _draw(first, products, excluded, out, bias, key):
    key = scrambled(key)
    size, count = len(bias), out.shape[1]
    row = np.empty(size, F)
    sums = np.empty((size + BLOCK - 1) // BLOCK, np.float64)
    buffer = np.empty(excluded.shape[1] + count, np.int64)
    for i in range(len(products)):
        _row(products[i], bias, row)
        maximum = largest(row)
        for b in range(len(sums)):
            sums[b] = _exp_sum(row[b * BLOCK : (b + 1) * BLOCK], maximum)
        skipped = buffer[: excluded.shape[1]]
        skipped[:] = excluded[i]
        for token in skipped:
            if 0 <= token < size:
                b = token // BLOCK
                sums[b] = _sum_of_rest(row, b, maximum, skipped)
        for k in range(count):
            total = sums.sum()
            if total < 1e-20:  # next to nothing is left of the softmax: magnify it
                maximum = _largest_of_rest(row, skipped)
                for b in range(len(sums)):
                    sums[b] = _sum_of_rest(row, b, maximum, skipped)
                total = sums.sum()
            n = 2 * ((first + i) * count + k)
            high, low = random_bits(n, key), random_bits(n + 1, key)
            point = (high * 2.0**-32 + low * 2.0**-64) * total
            token = _token_at(row, sums, maximum, skipped, point)
            out[i, k] = token
            skipped = buffer[: len(skipped) + 1]
            skipped[-1] = token
            sums[token // BLOCK] = _sum_of_rest(row, token // BLOCK, maximum, skipped)


@compiled
def _token_at(row, sums, maximum, skipped, point):
    """The token at which the cumulative sum passes `point`."""
    b = 0
    while b < len(sums) - 1 and point >= sums[b]:
        point -= sums[b]
        b += 1
    while b > 0 and sums[b] == 0.0:  # rounding led past the last
        b -= 1
    token = -1
    for j in range(b * BLOCK, min((b + 1) * BLOCK, len(row))):
        p = exp(row[j] - maximum)
        if p > F(0.0) and not _among(j, skipped):
            token = j
            point -= p
            if point < 0.0:
                break
    if token < 0:  # logits that are no numbers: any token, the loss will tell
        token = 0
        while _among(token, skipped):
            token += 1
    return token


@compiled
def _sum_of_rest(row, b, maximum, skipped):
    total = 0.0
    for j in range(b * BLOCK, min((b + 1) * BLOCK, len(row))):
        if not _among(j, skipped):
            total += exp(row[j] - maximum)
    return total


@compiled
def _largest_of_rest(row, skipped):
    maximum = F(-np.inf)
    for j in range(len(row)):
        if not _among(j, skipped):
            maximum = max(maximum, row[j])
    return maximum


@compiled
def _among(token, tokens):
    member = False
    for other in tokens:
        member |= token == other
    return member
