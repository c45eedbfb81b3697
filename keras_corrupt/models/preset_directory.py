"""The files of a saved preset.

    config.json                       format, class and constructor arguments
    tokenizer.json and others         when the model has a tokenizer
    <network>/model.safetensors       one folder for each network

Nothing in it is executed or unpickled: JSON, text, and plain arrays only. Presets that
were written before `model.safetensors` have `model.weights.h5`.
"""

import json
import os
import shutil
from pathlib import Path

import keras
import numpy as np
import safetensors
from safetensors.numpy import save_file

from keras_corrupt import tokenizers
from keras_corrupt.models import hdf5_weights
from keras_corrupt.models.named_variables import named_variables
from keras_corrupt.models.registry import registered_name

FORMAT = "keras_corrupt/2"
#: Formats that can be read, with the file of a network's weights.
WEIGHTS = {"keras_corrupt/1": "model.weights.h5", FORMAT: "model.safetensors"}


def write(directory, model, dtype=None):
    """Writes `model` to `directory`, whole or not at all, its weights as `dtype`."""
    directory = Path(directory)
    if directory.exists() and any(directory.iterdir()):
        _read_config(directory)  # refuses to overwrite anything but a preset
    temporary = directory.with_name(f".{directory.name}.{os.getpid()}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir(parents=True)
        for name, network in model.networks.items():
            (temporary / name).mkdir()
            save_file(_arrays(network, dtype), temporary / name / WEIGHTS[FORMAT])
        if model.tokenizer is not None:
            model.tokenizer.save(temporary)
        content = {
            "format": FORMAT,
            "class": registered_name(type(model)),
            "config": model.get_config(),
        }
        (temporary / "config.json").write_text(json.dumps(content, indent=2) + "\n")
        if directory.exists():
            old = directory.with_name(f".{directory.name}.{os.getpid()}.old")
            directory.rename(old)
            temporary.rename(directory)
            shutil.rmtree(old)
        else:
            temporary.rename(directory)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def class_name(directory):
    """Returns the registered name of the model class that a preset is of."""
    return _read_config(Path(directory))["class"]


def read(directory, cls):
    """Returns the constructor arguments and the tokenizer (or `None`)."""
    directory = Path(directory)
    if not directory.is_dir():
        raise ValueError(
            f"Unknown preset {str(directory)!r} for {cls.__name__}: neither one of "
            f"{sorted({*cls.presets, *cls.trained_presets})} nor a directory."
        )
    content = _read_config(directory)
    if content["class"] != registered_name(cls):
        raise ValueError(
            f"{directory} is a preset of {content['class']}, not of {cls.__name__}; "
            f"load it with {content['class']}.from_preset."
        )
    tokenizer = None
    if (directory / "tokenizer.json").exists():
        tokenizer = tokenizers.load(directory)
    return content["config"], tokenizer


def load_weights(directory, model):
    """Loads the weights of every network of `model`.

    Raises:
        ValueError: A file is missing, or holds other arrays than the network has.
    """
    file = WEIGHTS[_read_config(Path(directory))["format"]]
    for name, network in model.networks.items():
        path = Path(directory) / name / file
        if not path.exists():
            raise ValueError(f"The preset {str(directory)!r} lacks {path}.")
        try:
            if file == WEIGHTS[FORMAT]:
                _load_safetensors(path, network)
            else:
                hdf5_weights.load(path, network)
        # Keras's reader of HDF5 raises whatever a foreign file makes it.
        except Exception as error:
            raise ValueError(
                f"{path} does not hold the weights of {type(model).__name__}'s {name} "
                f"as its config.json describes it: {error}"
            ) from error


def _weights(network):
    """Returns the named variables of a network but for its random generators'."""
    weights = {id(variable) for variable in network.weights}
    return {n: v for n, v in named_variables(network).items() if id(v) in weights}


def _arrays(network, dtype):
    return {
        name: np.ascontiguousarray(keras.ops.convert_to_numpy(variable), dtype)
        for name, variable in _weights(network).items()
    }


def _load_safetensors(path, network):
    variables = _weights(network)
    with safetensors.safe_open(path, framework="numpy") as file:
        shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}
        _check(shapes, variables)  # by the header, before anything is read
        for name, variable in variables.items():
            variable.assign(file.get_tensor(name))


def _check(shapes, variables):
    """Raises a `ValueError` unless the names and shapes are those of the variables."""
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


def _read_config(directory):
    path = directory / "config.json"
    try:
        content = json.loads(path.read_text())
        if content["format"] not in WEIGHTS:
            raise ValueError(
                f"its format is {content['format']!r}, none of {', '.join(WEIGHTS)}"
            )
        if not isinstance(content["config"], dict) or not content["class"]:
            raise ValueError("its class or config is malformed")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{directory} is not a directory that save_to_preset wrote: "
            f"{path.name}: {error}"
        ) from error
    return content
