"""Files of weights by Keras, in HDF5: what they hold, before Keras reads them."""

import h5py

from keras_corrupt.encoders.legacy_weights import check_format

FILE = "model.weights.h5"


def count(path):
    """Returns how many arrays a file holds, and how many numbers they have.

    Raises:
        ValueError: It is in Keras 2's format, holds something else, or points at other
            files.
        OSError: It cannot be read.
    """
    check_format(path)
    with h5py.File(path, "r") as file:
        sizes = [array.size for array in _arrays(file)]
    return len(sizes), sum(sizes)


def _arrays(group):
    """Yields the arrays of a file; refuses all that is not just an array in it."""
    for name in group:
        # An HDF5 file can point at other files on the reader's disk.
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            raise ValueError(f"it links to other data at {name!r}; refused")
        item = group[name]
        # A file is not always a tree: a group can hold itself.
        if h5py.h5o.get_info(item.id).rc > 1:
            raise ValueError(f"{item.name} has several names; refused")
        if isinstance(item, h5py.Group):
            yield from _arrays(item)
            continue
        stored = item.id.get_storage_size() == item.size * item.dtype.itemsize
        if item.external or item.is_virtual or not stored:
            raise ValueError(f"it keeps {item.name} elsewhere or compressed; refused")
        random_state = "seed_generator" in item.name and item.dtype.kind in "iu"
        if not (random_state or item.dtype.kind in "fV"):
            raise ValueError(f"{item.name} holds {item.dtype}, not floats")
        yield item
