"""Dropout by a hash of the seed and of a number's place, on JAX.

Random numbers are arrays that a device writes, converts and reads. A hash is computed
within the operations around it (Salmon et al., 2011, "Parallel random numbers: as easy
as 1, 2, 3"). The backward pass has a Boolean for each number.
"""

import numpy as np
from keras import ops


def mixed(x):
    """Hashes 32 bits: "lowbias32" (Wellons, "Prospecting for Hash Functions", 2018)."""
    x = (x ^ (x >> 16)) * np.uint32(0x7FEB352D)
    x = (x ^ (x >> 15)) * np.uint32(0x846CA68B)
    return x ^ (x >> 16)


def threshold(rate):
    """Returns the least hash, uint32, of a number that stays."""
    return np.uint32(rate * 2**32)


def dropped(x, rate, seed):
    """Returns `x` with zeros where it is dropped, and else larger.

    Args:
        x: Floats, at most 2^32 of them.
        rate: The fraction that is dropped, a float below 1.
        seed: uint32 `[2]`.
    """
    places = ops.reshape(ops.arange(x.size, dtype="uint32"), x.shape)
    hashes = mixed(mixed(places + mixed(seed[0])) ^ mixed(seed[1]))
    return ops.where(hashes >= threshold(rate), x / (1.0 - rate), 0.0)
