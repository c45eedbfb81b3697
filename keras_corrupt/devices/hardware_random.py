"""Random numbers by the generator that GPUs and TPUs have in hardware, on JAX.

JAX's own generator, Threefry, computes some dozen integer operations for each number.
XLA's `RngBitGenerator` is the hardware's where there is one. Its numbers follow from
the key alone, so that a run can be continued, but they are others on another kind of
device.
"""

import functools

import keras


@functools.cache
def is_used():
    """Returns whether JAX computes on a GPU or a TPU."""
    if keras.backend.backend() != "jax":
        return False
    import jax

    return jax.default_backend() != "cpu"


def key_of(seed):
    """Returns the key of a seed, for all of `jax.random` and so of `keras.random`.

    Args:
        seed: uint32 `[2]`, what a `keras.random.SeedGenerator` draws.
    """
    import jax

    return jax.random.wrap_key_data(jax.numpy.concatenate([seed, seed]), impl="rbg")


def seed_of(key):
    """Returns the seed, uint32 `[2]`, of a key or of what is a seed already."""
    import jax

    if jax.dtypes.issubdtype(key.dtype, jax.dtypes.prng_key):
        key = jax.random.key_data(key)
    return key[:2]
