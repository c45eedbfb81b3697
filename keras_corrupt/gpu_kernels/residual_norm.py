"""Bias, dropout, residual and layer norm as Pallas kernels, forward and backward.

Each reads and writes an array once. The backward kernel adds up the gradients of bias
and norm over some rows, and XLA adds up these sums. Which numbers are dropped follows
from the hash of `devices.hashed_random`, and is not kept.
"""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from keras_corrupt.devices.hashed_random import hashed, threshold

#: Rows that a kernel computes with at once.
ROWS = 4
#: Rows whose gradients of the vectors are added up in one kernel.
SUMMED = 32


@functools.partial(jax.custom_vjp, nondiff_argnums=(4, 5, 6))
def residual_norm(x, y, vectors, seed, epsilon, rate, interpret=False):
    """Layer norm of `x + dropout(y + bias)`, all computed in float32.

    Args:
        x: `[rows, hidden]`; `rows` is a multiple of `SUMMED`.
        y: `[rows, hidden]`.
        vectors: float32 `[3, hidden]`: the bias, the norm's factor, its shift.
        seed: uint32 `[2]`.
        epsilon: Added to the variance.
        rate: The fraction that is dropped, a float below 1.
        interpret: Whether to compute without a GPU, slowly.

    Returns:
        An array like `x`.
    """
    return _forward(x, y, vectors, seed, epsilon, rate, interpret)[0]


# Jitted, so that a network's layers share one kernel: a program's start waits until JAX
# has translated each for the GPU.
@functools.partial(jax.jit, static_argnums=(4, 5, 6))
def _forward(x, y, vectors, seed, epsilon, rate, interpret):
    rows, hidden = x.shape
    block = pl.BlockSpec((ROWS, hidden), lambda i: (i, 0))
    out, unit, factor = pl.pallas_call(
        functools.partial(_forward_kernel, epsilon=epsilon, rate=rate),
        grid=rows // ROWS,
        in_specs=[block, block, _whole(vectors), _whole(seed)],
        out_specs=[block, block, pl.BlockSpec((ROWS,), lambda i: (i,))],
        out_shape=[_like(x), _like(x), jax.ShapeDtypeStruct((rows,), jnp.float32)],
        **_compiled("residual_norm", interpret),
    )(x, y, vectors, seed)
    return out, (unit, factor, vectors, seed)


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _backward(epsilon, rate, interpret, kept, gradient):
    unit, factor, vectors, seed = kept
    rows, hidden = unit.shape
    block = pl.BlockSpec((SUMMED, hidden), lambda i: (i, 0))
    dx, dy, sums = pl.pallas_call(
        functools.partial(_backward_kernel, rate=rate),
        grid=rows // SUMMED,
        in_specs=[
            block,
            block,
            pl.BlockSpec((SUMMED,), lambda i: (i,)),
            _whole(vectors),
            _whole(seed),
        ],
        out_specs=[block, block, pl.BlockSpec((None, 3, hidden), lambda i: (i, 0, 0))],
        out_shape=[
            _like(unit),
            _like(unit),
            jax.ShapeDtypeStruct((rows // SUMMED, 3, hidden), jnp.float32),
        ],
        **_compiled("residual_norm_gradients", interpret),
    )(gradient, unit, factor, vectors, seed)
    return dx, dy, sums.sum(axis=0), None


residual_norm.defvjp(_forward, _backward)


def _like(array):
    return jax.ShapeDtypeStruct(array.shape, array.dtype)


def _whole(array):
    return pl.BlockSpec(array.shape, lambda i: (0,) * array.ndim)


def _compiled(name, interpret):
    return {
        "compiler_params": triton.CompilerParams(num_warps=4, num_stages=2),
        "interpret": interpret,
        "name": name,
    }


def _parts(hidden):
    """Returns slices of a row: Triton's arrays have sizes that are powers of 2."""
    size = hidden & -hidden
    return [pl.ds(start, size) for start in range(0, hidden, size)]


def _stays(seed, first_row, part, hidden, rate):
    """Returns which numbers of some rows stay, as `hashed_random.dropped` has it."""
    rows = first_row + jnp.arange(ROWS, dtype=jnp.int32)
    columns = part.start + jnp.arange(part.size, dtype=jnp.int32)
    places = (rows[:, None] * hidden + columns[None, :]).astype(jnp.uint32)
    return hashed(places, (seed[0], seed[1])) >= threshold(rate)


def _forward_kernel(x, y, vectors, seed, out, unit, factor, *, epsilon, rate):
    hidden, first_row = x.shape[-1], pl.program_id(0) * ROWS
    parts, added = _parts(hidden), []
    for part in parts:
        change = y[:, part].astype(jnp.float32) + vectors[0, part]
        if rate:
            stays = _stays(seed, first_row, part, hidden, rate)
            change = jnp.where(stays, change / (1.0 - rate), 0.0)
        added.append(x[:, part].astype(jnp.float32) + change)
    mean = sum(each.sum(axis=1) for each in added) / hidden
    centred = [each - mean[:, None] for each in added]
    variance = sum((each * each).sum(axis=1) for each in centred) / hidden
    factor[...] = scale = jax.lax.rsqrt(variance + epsilon)
    for part, each in zip(parts, centred, strict=True):
        each = each * scale[:, None]
        unit[:, part] = each.astype(unit.dtype)
        shifted = each * vectors[1, part] + vectors[2, part]
        out[:, part] = shifted.astype(out.dtype)


def _backward_kernel(gradient, unit, factor, vectors, seed, dx, dy, sums, *, rate):
    hidden, first_row = unit.shape[-1], pl.program_id(0) * SUMMED
    parts = _parts(hidden)

    def add(number, totals):
        rows, new = pl.ds(number * ROWS, ROWS), []
        scale = factor[rows][:, None]
        shifts = [gradient[rows, part].astype(jnp.float32) for part in parts]
        units = [unit[rows, part].astype(jnp.float32) for part in parts]
        inner = [
            shift * vectors[1, part] for shift, part in zip(shifts, parts, strict=True)
        ]
        pairs = zip(inner, units, strict=True)
        mean = sum(g.sum(axis=1) for g in inner)[:, None] / hidden
        along = sum((g * u).sum(axis=1) for g, u in pairs)[:, None] / hidden
        for i, part in enumerate(parts):
            of_x = of_y = scale * (inner[i] - mean - units[i] * along)
            if rate:
                first = first_row + number * ROWS
                stays = _stays(seed, first, part, hidden, rate)
                of_y = jnp.where(stays, of_x / (1.0 - rate), 0.0)
            dx[rows, part] = of_x.astype(dx.dtype)
            dy[rows, part] = of_y.astype(dy.dtype)
            of_vectors = of_y, shifts[i] * units[i], shifts[i]
            new.append([t + v for t, v in zip(totals[i], of_vectors, strict=True)])
        return new

    zeros = [[jnp.zeros((ROWS, part.size), jnp.float32)] * 3 for part in parts]
    totals = jax.lax.fori_loop(0, SUMMED // ROWS, add, zeros)
    for part, of_part in zip(parts, totals, strict=True):
        for number, total in enumerate(of_part):
            sums[number, part] = total.sum(axis=0)
