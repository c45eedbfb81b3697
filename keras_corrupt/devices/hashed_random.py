"""Random numbers by a hash of the seed and of a number's place, on JAX.

Other random numbers are arrays that a device writes, converts and reads. A hash is
computed within the operations around it (Salmon et al., 2011, "Parallel random numbers:
as easy as 1, 2, 3").
"""

import keras
import numpy as np
from keras import ops

from keras_corrupt.devices.hardware_random import seed_of


def mixed(x):
    """Hashes 32 bits: "lowbias32" (Wellons, "Prospecting for Hash Functions", 2018)."""
    x = (x ^ (x >> 16)) * np.uint32(0x7FEB352D)
    x = (x ^ (x >> 15)) * np.uint32(0x846CA68B)
    return x ^ (x >> 16)


def threshold(rate):
    """Returns the least hash, uint32, of a number that stays."""
    return np.uint32(rate * 2**32)


def hashed(places, seed):
    """Returns a hash, uint32, for each place.

    Args:
        places: uint32 `[...]`.
        seed: Two of uint32.
    """
    return mixed(mixed(places + mixed(seed[0])) ^ mixed(seed[1]))


def hashes(shape, seed):
    """Returns the hashes of all places of an array, at most 2^32 of them."""
    places = ops.reshape(ops.arange(np.prod(shape), dtype="uint32"), shape)
    return hashed(places, seed)


def dropped(x, rate, seed):
    """Returns `x` with zeros where it is dropped, and else larger.

    The backward pass has a Boolean for each number.

    Args:
        x: Floats.
        rate: The fraction that is dropped, a float below 1.
        seed: uint32 `[2]`.
    """
    stays = hashes(x.shape, seed) >= threshold(rate)
    return ops.where(stays, x / (1.0 - rate), 0.0)


def uniform(shape, seed):
    """Returns float32 of a shape, from 0 to below 1: on TensorFlow Keras's own.

    Args:
        shape: Ints.
        seed: A `keras.random.SeedGenerator`.
    """
    if keras.backend.backend() != "jax":
        return keras.random.uniform(shape, dtype="float32", seed=seed)
    drawn = hashes(shape, seed_of(seed.next())) >> 8  # what float32 has digits for
    return ops.cast(drawn, "float32") * 2.0**-24
