"""Many arrays as a few flat ones, with which a device computes in a few kernels."""

import itertools
import math

from keras import ops


class FlatArrays:
    """Which arrays lie one behind the other in a flat array.

    Compilers find that packing what was unpacked changes nothing, and leave out both.

    Args:
        shapes: The arrays' shapes.
        keys: For each array a hashable value. The arrays of one value, which have one
            type, are one flat array.

    >>> import numpy as np
    >>> flat = FlatArrays([(2,), (), (1, 2)], ["a", "b", "a"])
    >>> packed = flat.pack([np.array([1, 2]), np.array(3), np.array([[4, 5]])])
    >>> [np.array(array).tolist() for array in packed]
    [[1, 2, 4, 5], [3]]
    >>> [np.array(array).tolist() for array in flat.unpack(packed)]
    [[1, 2], 3, [[4, 5]]]
    """

    def __init__(self, shapes, keys):
        self.shapes = [tuple(shape) for shape in shapes]
        self.positions = {}
        for position, key in enumerate(keys):
            self.positions.setdefault(key, []).append(position)

    def pack(self, arrays):
        """Returns the flat arrays, in the order in which their keys occurred."""
        return [
            ops.concatenate([ops.reshape(arrays[i], (-1,)) for i in positions])
            for positions in self.positions.values()
        ]

    def unpack(self, flat_arrays):
        """Returns the arrays that were packed."""
        arrays = [None] * len(self.shapes)
        for flat, positions in zip(flat_arrays, self.positions.values(), strict=True):
            sizes = [math.prod(self.shapes[i]) for i in positions]
            starts = list(itertools.accumulate(sizes[:-1], initial=0))
            _, *parts = ops.split(flat, starts)  # before the first there is nothing
            for i, part in zip(positions, parts, strict=True):
                arrays[i] = ops.reshape(part, self.shapes[i])
        return arrays
