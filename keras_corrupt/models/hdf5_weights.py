"""Weights as presets of the format `keras_corrupt/1` have them: HDF5, by Keras.

Keras names what is in the file by attributes and classes, so that layers which have
moved since are found where `MOVED` says.
"""

import tempfile
from pathlib import Path

import h5py

#: Group of a network's file then -> the group where Keras looks for it now.
MOVED = {
    "vars": "head/vars",
    "layers/dense": "head/transform",
    "layers/layer_normalization": "head/norm",
    "classifier": "head/classifier",
}


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
        copy = Path(folder) / "model.weights.h5"
        with h5py.File(path, "r") as file, h5py.File(copy, "w") as moved:
            _refuse_external_data(file, path)
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


def _refuse_external_data(group, path):
    # An HDF5 file can point at other files on the reader's disk.
    for name in group:
        link = group.get(name, getlink=True)
        if not isinstance(link, h5py.HardLink):
            raise ValueError(f"{path} links to other data at {name!r}; refused.")
        item = group[name]
        if isinstance(item, h5py.Group):
            _refuse_external_data(item, path)
        elif item.external or item.is_virtual:
            raise ValueError(f"{path} keeps {name!r} in another file; refused.")
