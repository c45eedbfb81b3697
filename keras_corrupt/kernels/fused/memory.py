"""Memory for the results of kernels, kept from one training step to the next.

The system gives and takes memory by pages, which costs more than what a kernel does
with them.
"""

import collections
import math
import threading
import weakref

import numpy as np

#: TensorFlow takes over an array, without a copy, at a multiple of this many bytes.
ALIGNMENT = 64


class Memory:
    """Makes arrays from the memory of arrays of the same size that are gone.

    Before it takes more from the system it gives back all that is not in use, if that
    is over half of what has been in use at once: so it does not grow where shapes vary.
    """

    def __init__(self):
        self._kept = collections.defaultdict(list)
        self._held = self._peak = 0
        self._lock = threading.Lock()

    def empty(self, shape, dtype):
        """Returns an array without defined contents.

        Args:
            shape: Its shape.
            dtype: Its NumPy type.
        """
        dtype = np.dtype(dtype)
        size = math.prod(map(int, shape)) * dtype.itemsize
        try:
            block = self._kept[size].pop()
        except IndexError:
            block = self._allocate(size)
        array = block.view(dtype).reshape(shape)
        weakref.finalize(array, self._keep, block)
        return array

    def _keep(self, block):
        self._kept[block.size].append(block)

    def _allocate(self, size):
        with self._lock:
            kept = sum(n * len(blocks) for n, blocks in list(self._kept.items()))
            self._peak = max(self._peak, self._held - kept + size)
            if kept > self._peak / 2:
                given, self._kept = self._kept, collections.defaultdict(list)
                self._held -= sum(n * len(blocks) for n, blocks in given.items())
            self._held += size
        memory = np.empty(size + ALIGNMENT, np.uint8)
        start = -memory.ctypes.data % ALIGNMENT
        return memory[start : start + size]
