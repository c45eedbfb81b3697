"""Weights as presets of the format `keras_corrupt/1` have them: HDF5, by Keras.

Keras names what is in the file by attributes and classes, so that layers which have
moved since are found where `MOVED` says.
"""

import tempfile
from pathlib import Path

import h5py

from keras_corrupt.encoders.legacy_weights import check_format

FILE = "model.weights.h5"
#: Group of a network's file then -> the group where Keras looks for it now.
MOVED = {
    "vars": "head/vars",
    "layers/dense": "head/transform",
    "layers/layer_normalization": "head/norm",
    "classifier": "head/classifier",
}


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


def load(path, network):
    """Loads a network's weights.

    Args:
        path: A `model.weights.h5`.
        network: The `keras.Model` to load them into.

    Raises:
        ValueError: The file points at other files, or holds other weights.
        OSError: It cannot be read.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / FILE
        with h5py.File(path, "r") as file, h5py.File(copy, "w") as moved:
            # Keras passes over what the network has no place for.
            found = sorted(a.shape for a in _arrays(file) if a.dtype.kind in "fV")
            if found != sorted(tuple(v.shape) for v in network.weights):
                raise ValueError("its arrays are not of the shapes of the model's")
            for name in file:
                file.copy(file[name], moved, name)
            if hasattr(network, "head"):
                _move(moved)
        network.load_weights(copy)


def _move(file):
    for old, new in MOVED.items():
        if old in file and len(file[old]):
            if new in file:
                del file[new]
            file.move(old, new)


def _arrays(group):
    """Yields the arrays of a file; refuses all that is not just an array in it."""
    for name in group:
        # An HDF5 file can point at other files on the reader's disk.
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            raise ValueError(f"it links to other data at {name!r}; refused")
        item = group[name]
        # Nor need it be a tree: a group can hold itself.
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
