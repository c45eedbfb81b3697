"""Attention with dropout as Pallas kernels, block by block, forward and backward.

FlashAttention-2 (Dao, 2023, algorithms 1 and 2). Which weights are dropped follows from
a hash of the seed, the text, the head, the query and the key, so that nothing is kept
for the backward pass: it computes the hash again.

This module needs JAX; `dropout_attention` imports it where it is used.
"""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from keras_corrupt.devices.hashed_random import mixed, threshold

#: Queries and keys that a kernel computes with at once.
BLOCK = 64

#: What stands in the place of a hidden key's logit, as in the plain form.
_HIDDEN = -1e9


def kept(seed, number, queries, keys, rate):
    """Returns which attention weights stay.

    Args:
        seed: Two scalars, uint32.
        number: The number of a text's head among all heads of all texts, int32.
        queries: Positions, int32 `[queries, 1]`.
        keys: Positions, int32 `[1, keys]`.
        rate: The fraction that is dropped.

    Returns:
        Boolean `[queries, keys]`, or as the arguments broadcast.
    """
    number, queries, keys = (x.astype(jnp.uint32) for x in (number, queries, keys))
    row = mixed(mixed(seed[0] ^ mixed(number)) + queries)
    column = mixed(mixed(seed[1]) + keys)
    return mixed(row ^ column) >= threshold(rate)


@functools.partial(jax.custom_vjp, nondiff_argnums=(6, 7))
def attention(query, key, value, mask, first, seed, rate, interpret=False):
    """Attends with dropout of the weights.

    Args:
        query: `[batch, length, heads, size]`; `length` is a multiple of `BLOCK` and
            `size` a power of 2.
        key: Likewise.
        value: Likewise.
        mask: int8, `[batch, heads, length, length]`, where each of the first three may
            be 1 instead; 0 hides a key.
        first: int32 `[1]`, the first text's number in the whole batch.
        seed: uint32 `[2]`.
        rate: The fraction that is dropped, a float below 1.
        interpret: Whether to compute without a GPU, slowly.

    Returns:
        `[batch, length, heads, size]`.
    """
    return _forward(query, key, value, mask, first, seed, rate, interpret)[0]


# Jitted, so that a network's layers share one kernel: a program's start waits until JAX
# has translated each for the GPU.
@functools.partial(jax.jit, static_argnums=(6, 7))
def _forward(query, key, value, mask, first, seed, rate, interpret):
    inputs = query, key, value, mask, first, seed
    batch, length, heads, _ = query.shape
    # Each query's largest logit, and the sum of its weights relative to that one.
    number = jax.ShapeDtypeStruct((batch, heads, length), jnp.float32)
    output, *softmax = _call(
        _forward_kernel, inputs, [query, number, number], rate, interpret
    )
    return output, (*inputs, output, *softmax)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _backward(rate, interpret, kept_arrays, gradient):
    *inputs, output, largest, total = kept_arrays
    products = gradient.astype(jnp.float32) * output.astype(jnp.float32)
    products = jnp.moveaxis(products.sum(-1), 1, 2)  # [batch, heads, length]
    gradients = _call(
        _backward_kernel,
        (*inputs, gradient, largest, total, products),
        inputs[:3],
        rate,
        interpret,
    )
    return (*gradients, None, None, None)


attention.defvjp(_forward, _backward)


def _call(kernel, inputs, outputs, rate, interpret):
    """Calls a kernel for each text, head and block of positions.

    It sees all of a text's head in its inputs, and its own block of its outputs.
    """
    batch, length, heads, _ = inputs[0].shape

    def whole(array):
        if array.ndim == 1:
            return pl.BlockSpec(array.shape, lambda text, head, block: (0,))
        axes = (0, 1) if array is inputs[3] or array.ndim == 3 else (0, 2)
        shape = [None if axis in axes else n for axis, n in enumerate(array.shape)]
        shared = [array.shape[axis] == 1 for axis in axes]

        def index(text, head, block):
            places = [0] * array.ndim
            for axis, number, same in zip(axes, (text, head), shared, strict=True):
                places[axis] = 0 if same else number
            return tuple(places)

        return pl.BlockSpec(tuple(shape), index)

    def block_of(array):
        if len(array.shape) == 3:
            return pl.BlockSpec((None, None, BLOCK), lambda t, h, b: (t, h, b))
        shape = None, BLOCK, None, array.shape[-1]
        return pl.BlockSpec(shape, lambda t, h, b: (t, b, h, 0))

    return pl.pallas_call(
        functools.partial(kernel, rate=rate, heads=heads),
        grid=(batch, heads, length // BLOCK),
        in_specs=[whole(array) for array in inputs],
        out_specs=[block_of(array) for array in outputs],
        out_shape=[jax.ShapeDtypeStruct(a.shape, a.dtype) for a in outputs],
        compiler_params=triton.CompilerParams(num_warps=4, num_stages=2),
        interpret=interpret,
        name=kernel.__name__.strip("_"),
    )(*inputs)


class _Head:
    """What a kernel reads of one text's head.

    Args:
        refs: References to query, key, value, mask, first and seed.
        rate: The fraction that is dropped.
        heads: Number of heads.
    """

    def __init__(self, refs, rate, heads):
        self.query, self.key, self.value, self.mask, first, seed = refs
        self.seed = seed[0], seed[1]
        self.number = (first[0] + pl.program_id(0)) * heads + pl.program_id(1)
        self.rate = rate
        self.scale = self.query.shape[-1] ** -0.5
        self.blocks = self.query.shape[0] // BLOCK

    def logits(self, queries, keys):
        """Returns the logits of two blocks, and which keys the queries see."""
        logits = triton.dot(at(self.query, queries), at(self.key, keys).T) * self.scale
        rows = slice(None) if self.mask.shape[0] == 1 else rows_of(queries)
        seen = self.mask[rows, rows_of(keys)] != 0
        return jnp.where(seen, logits, _HIDDEN), seen

    def dropped(self, weights, queries, keys):
        """Returns the weights with zeros where they are dropped, else larger."""
        positions = jnp.arange(BLOCK, dtype=jnp.int32)
        stays = kept(
            self.seed,
            self.number,
            (queries * BLOCK + positions)[:, None],
            (keys * BLOCK + positions)[None, :],
            self.rate,
        )
        return jnp.where(stays, weights / (1.0 - self.rate), 0.0)


def rows_of(block):
    """Returns the slice of a block of positions."""
    return pl.ds(block * BLOCK, BLOCK)


def at(ref, block):
    """Returns a block of an array `[length, size]`."""
    return ref[rows_of(block), :]


def _forward_kernel(*refs, rate, heads):
    *inputs, output_ref, largest_ref, total_ref = refs
    head, queries = _Head(inputs, rate, heads), pl.program_id(2)

    def add(keys, state):
        output, largest, total = state
        logits, _ = head.logits(queries, keys)
        new_largest = jnp.maximum(largest, logits.max(axis=1))
        weights = jnp.exp(logits - new_largest[:, None])
        shrunk = jnp.exp(largest - new_largest)
        value = at(head.value, keys)
        weights_kept = head.dropped(weights, queries, keys).astype(value.dtype)
        output = output * shrunk[:, None] + triton.dot(weights_kept, value)
        return output, new_largest, total * shrunk + weights.sum(axis=1)

    start = (
        jnp.zeros((BLOCK, output_ref.shape[-1]), jnp.float32),
        jnp.full(BLOCK, -jnp.inf, jnp.float32),
        jnp.zeros(BLOCK, jnp.float32),
    )
    output, largest, total = jax.lax.fori_loop(0, head.blocks, add, start)
    output_ref[...] = (output / total[:, None]).astype(output_ref.dtype)
    largest_ref[...], total_ref[...] = largest, total


def _backward_kernel(*refs, rate, heads):
    *inputs, gradient_ref, largest_ref, total_ref, products_ref = refs[:-3]
    query_ref, key_ref, value_ref = refs[-3:]
    head, own = _Head(inputs, rate, heads), pl.program_id(2)

    def gradients(queries, keys):
        """Returns what two blocks' weights are, and the gradient of their logits."""
        logits, seen = head.logits(queries, keys)
        rows = rows_of(queries)
        weights = (
            jnp.exp(logits - largest_ref[rows][:, None]) / total_ref[rows][:, None]
        )
        gradient = triton.dot(at(gradient_ref, queries), at(head.value, keys).T)
        gradient = head.dropped(gradient, queries, keys)
        gradient = weights * (gradient - products_ref[rows][:, None])
        gradient = jnp.where(seen, gradient, 0.0) * head.scale
        return head.dropped(weights, queries, keys), gradient

    def add_keys(queries, state):
        key, value = state
        weights, logits_gradient = gradients(queries, own)
        query, gradient = at(head.query, queries), at(gradient_ref, queries)
        key += triton.dot(logits_gradient.T.astype(query.dtype), query)
        return key, value + triton.dot(weights.T.astype(gradient.dtype), gradient)

    def add_queries(keys, query):
        _, logits_gradient = gradients(own, keys)
        key = at(head.key, keys)
        return query + triton.dot(logits_gradient.astype(key.dtype), key)

    zeros = jnp.zeros((BLOCK, query_ref.shape[-1]), jnp.float32)
    key, value = jax.lax.fori_loop(0, head.blocks, add_keys, (zeros, zeros))
    query = jax.lax.fori_loop(0, head.blocks, add_queries, zeros)
    for ref, array in ((query_ref, query), (key_ref, key), (value_ref, value)):
        ref[...] = array.astype(ref.dtype)
