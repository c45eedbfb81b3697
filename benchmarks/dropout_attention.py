"""The kernel of attention with dropout on a GPU: how exact and how fast it is.

    export KERAS_BACKEND=jax
    python -m benchmarks.dropout_attention
    python -m benchmarks.dropout_attention --shapes 4x128x4x64 --rate 0.3

Compares output and gradients in bfloat16 with the plain form in float32 that drops the
same weights, and times it beside the plain form in bfloat16. Both times are of a
forward and a backward pass. On a CPU the kernel is interpreted, slowly.
"""

import dataclasses
import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np
import tyro

from keras_corrupt.devices import attention_kernels, dropout_attention

SEED = np.array([7, 9], "uint32")


@dataclasses.dataclass
class Settings:
    """What to compute."""

    shapes: tuple[str, ...] = ("4x128x4x64", "2x512x12x64", "2x128x1x64", "2x256x2x32")
    """Texts, tokens, heads and their sizes."""
    rate: float = 0.1
    """Fraction of the weights that is dropped."""
    times: int = 50
    """Passes that are timed."""


def plain(query, key, value, mask, stays, rate):
    """Attends with dropout, in the precision of the queries."""
    logits = jnp.einsum("bqhd,bkhd->bhqk", query, key) / query.shape[-1] ** 0.5
    weights = jax.nn.softmax(jnp.where(mask, logits, -1e9))
    weights = jnp.where(stays, weights / (1 - rate), 0.0)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, value)


def kept(rate, seed, shape):
    """Returns which weights stay: boolean `[batch, heads, length, length]`."""
    batch, length, heads, _ = shape
    rows = jnp.arange(batch * heads).reshape(batch, heads, 1, 1)
    places, seed = jnp.arange(length), jnp.array(seed)
    return attention_kernels.kept(seed, rows, places[:, None], places[None, :], rate)


def with_gradients(attend, weights):
    """Returns a compiled function: the attended values, and the inputs' gradients."""

    def loss(query, key, value):
        attended = attend(query, key, value).astype("float32")
        return (attended * weights).sum(), attended

    step = jax.jit(jax.value_and_grad(loss, (0, 1, 2), has_aux=True))

    def function(*inputs):
        (_, attended), gradients = step(*inputs)
        return attended, *gradients

    return function


def milliseconds(function, inputs, times):
    """Returns the median time of a call."""
    jax.block_until_ready(function(*inputs))
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        jax.block_until_ready(function(*inputs))
        taken.append(1e3 * (time.perf_counter() - start))
    return statistics.median(taken)


def row(shape, settings):
    """Returns a row of the table."""
    rng = np.random.default_rng(0)
    *inputs, weights = rng.normal(size=(4, *shape)).astype("float32")
    inputs = [jnp.asarray(array, "bfloat16") for array in inputs]
    lengths = rng.integers(shape[1] // 2, shape[1] + 1, shape[0])
    mask = jnp.asarray(np.arange(shape[1]) < lengths[:, None])[:, None, None]
    stays, on_cpu = kept(settings.rate, SEED, shape), jax.default_backend() == "cpu"
    kernel = with_gradients(
        lambda *x: dropout_attention.attend(
            *x, mask, settings.rate, jnp.asarray(SEED), interpret=on_cpu
        ),
        weights,
    )
    other = with_gradients(lambda *x: plain(*x, mask, stays, settings.rate), weights)
    with jax.default_matmul_precision("highest"):
        exact = other(*[array.astype("float32") for array in inputs])
    norm = jnp.linalg.norm
    errors = [
        float(norm(found.astype("float32") - right) / norm(right))
        for found, right in zip(kernel(*inputs), exact, strict=True)
    ]
    times = [milliseconds(f, inputs, settings.times) for f in (kernel, other)]
    cells = [" x ".join(map(str, shape)), *(f"{error:.1e}" for error in errors)]
    return " | ".join([*cells, *(f"{taken:.3f} ms" for taken in times)])


def main(settings):
    print("| shape | output | of queries | of keys | of values | kernel | plain |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for shape in settings.shapes:
        print(f"| {row(tuple(map(int, shape.split('x'))), settings)} |", flush=True)
    print(f"\n{jax.devices()[0].device_kind}, JAX {jax.__version__}; relative errors")


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__, use_underscores=True))
