"""What all kernels are made of: reading and writing arrays, exp, chance."""

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from keras_corrupt.cpu_kernels.compiling import compiled

F, U, S, L = np.float32, np.uint32, np.int32, np.uint64


# === Parts ===


def load(x):
    """Returns an array's element as float32."""


@overload(load)
def _load(x):
    if x == types.uint16:
        return lambda x: U(U(x) << U(16)).view(F)
    return lambda x: F(x)


def store(array, i, x):
    """Sets an array's element, rounded to the nearest, ties to even."""


@overload(store)
def _store(array, i, x):
    if array.dtype == types.uint16:

        def rounded(array, i, x):
            bits = F(x).view(U)
            odd = U(U(bits >> U(16)) & U(1))
            array[i] = U(U(bits + U(0x7FFF) + odd) >> U(16))

        return rounded

    def exact(array, i, x):
        array[i] = x

    return exact


@compiled
def rows(array):
    """Returns an array as rows of its last axis."""
    return array.reshape(-1, array.shape[-1])


@compiled
def exp(x):
    """e^x to 2 units in the last place: 2^n e^r, the latter by Cephes's polynomial.

    Below -87 it is 0: masked positions are not seen at all, and make no denormal
    numbers, which are slow.
    """
    is_zero = x < F(-87.0)
    x = F(-87.0) if is_zero else x
    x = F(88.0) if x > F(88.0) else x
    n = np.floor(x * F(1.44269504) + F(0.5))
    r = x - n * F(0.693359375) + n * F(2.12194440e-4)
    p = F(1.9875691500e-4)
    p = p * r + F(1.3981999507e-3)
    p = p * r + F(8.3334519073e-3)
    p = p * r + F(4.1665795894e-2)
    p = p * r + F(1.6666665459e-1)
    p = p * r + F(5.0000001201e-1)
    p = p * r * r + r + F(1.0)
    return F(0.0) if is_zero else p * S(S(S(n) + S(127)) << S(23)).view(F)


@compiled
def mixed(z):
    """Scrambles 32 bits (Wellons's `lowbias32`)."""
    z = U(U(z ^ U(z >> U(16))) * U(0x21F0AAAD))
    z = U(U(z ^ U(z >> U(15))) * U(0x735A2D97))
    return U(z ^ U(z >> U(15)))


@compiled
def scrambled(key):
    """Scrambles a pair of words, so that `random_bits` may add them to indices.

    Seeds are often neighbours. The numbers of one index and one seed would otherwise
    be the numbers of the next index and the seed before, too. (The function is the
    finaliser of SplitMix64: Steele et al., 2014. Different pairs stay different.)
    """
    z = L(L(key[0]) << L(32)) | L(key[1])
    z = L(z + L(0x9E3779B97F4A7C15))
    z = L(L(z ^ L(z >> L(30))) * L(0xBF58476D1CE4E5B9))
    z = L(L(z ^ L(z >> L(27))) * L(0x94D049BB133111EB))
    z = L(z ^ L(z >> L(31)))
    return U(z >> L(32)), U(z)


@compiled
def random_bits(i, key):
    """32 random bits for each index `i` and each pair of words that are `scrambled`."""
    return mixed(U(mixed(U(U(i) + key[0])) + key[1]))


class Dropout(NamedTuple):
    """Which values are dropped: those whose random bits are below `threshold`."""

    key: tuple
    threshold: np.uint32
    factor: np.float32


@compiled
def dropout_of(key, rate):
    """Makes a `Dropout` of the two words of a seed and of its rate, a float32."""
    return Dropout(scrambled(key), U(rate * F(2.0**32)), F(1.0) / (F(1.0) - rate))


@compiled
def dropped(x, i, dropout):
    """Returns `x`, the `i`-th of all values, scaled up, or zero."""
    stays = random_bits(i, dropout.key) >= dropout.threshold
    return x * dropout.factor if stays else F(0.0)


@compiled
def largest(row):
    """The maximum, by integers in the numbers' order: those compare in vectors."""
    maximum = S(-(2**31))
    for j in range(len(row)):
        maximum = max(maximum, ordered(F(load(row[j])).view(S)))
    return S(ordered(maximum)).view(F)


@compiled
def ordered(bits):
    """Turns the bits of a float32 into an integer that sorts like it, and back."""
    return S(bits ^ S(S(bits >> S(31)) & S(0x7FFFFFFF)))
