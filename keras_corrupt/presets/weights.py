"""Weights as presets have them: a safetensors file, plain arrays by name."""

import keras
import numpy as np
import safetensors
from safetensors.numpy import save as serialize

from keras_corrupt.presets.named_variables import named_weights

FILE = "model.safetensors"
_MAX_BYTES = 1 << 34
#: Bytes of the header, which is read whole: thousands of arrays.
_MAX_HEADER_BYTES = 1 << 22


def save(path, network, dtype=None):
    """Writes the weights of `network`, as they are or as another `dtype`."""
    arrays = {
        name: _as_dtype(keras.ops.convert_to_numpy(variable), dtype)
        for name, variable in named_weights(network).items()
    }
    path.write_bytes(serialize(arrays))  # `save_file` lets nobody else read the file


def _as_dtype(array, dtype):
    """Returns an array as another `dtype`, if that has numbers as large."""
    with np.errstate(over="ignore"):
        cast = np.ascontiguousarray(array, dtype)
    return cast if np.isfinite(cast).all() else np.ascontiguousarray(array)


def count(path):
    """Returns how many arrays a file holds, and how many numbers they have.

    Raises:
        ValueError: It is no such file.
    """
    with open_checked(path) as file:
        shapes = [file.get_slice(name).get_shape() for name in file.keys()]
    return len(shapes), sum(int(np.prod(shape, dtype=object)) for shape in shapes)


def load(path, network):
    """Loads a network's weights.

    Raises:
        ValueError: The file holds other arrays than the network has, or numbers that
            are not finite.
    """
    variables = named_weights(network)
    with open_checked(path) as file:
        shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}
        _check(shapes, variables)  # by the header, before anything is read
        for name, variable in variables.items():
            array = file.get_tensor(name)
            # A float may be of another precision.
            dtype = keras.backend.standardize_dtype(array.dtype)
            floats = map(keras.backend.is_float_dtype, (dtype, variable.dtype))
            if dtype != variable.dtype and not all(floats):
                raise ValueError(f"{name} holds {dtype}, not {variable.dtype}")
            variable.assign(array)
            if not np.isfinite(keras.ops.convert_to_numpy(variable)).all():
                raise ValueError(f"{name} has NaN or infinity")


def open_checked(path):
    """Opens a file if it and its header are not too large to be read."""
    if not path.is_file():
        raise ValueError("there is no such file")
    if path.stat().st_size > _MAX_BYTES:
        raise ValueError(f"it is larger than {_MAX_BYTES:,} bytes")
    with open(path, "rb") as file:
        header = int.from_bytes(file.read(8), "little")
    if header > _MAX_HEADER_BYTES:
        raise ValueError(f"its header has {header:,} bytes")
    return safetensors.safe_open(path, framework="numpy")


def _check(shapes, variables):
    """Raises a `ValueError` unless the variables have the names and shapes."""
    expected = {name: tuple(variable.shape) for name, variable in variables.items()}
    problems = [f"{name} is missing" for name in expected if name not in shapes]
    problems += [f"{name} is not the model's" for name in shapes.keys() - expected]
    problems += [
        f"{name} has the shape {shapes[name]}, not {shape}"
        for name, shape in expected.items()
        if shapes.get(name, shape) != shape
    ]
    if problems:
        more = f"; and {len(problems) - 3} more" if len(problems) > 3 else ""
        raise ValueError("; ".join(problems[:3]) + more)
