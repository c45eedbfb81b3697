"""The files of a saved preset.

    config.json                       format, class and constructor arguments
    tokenizer.json and others         when the model has a tokenizer
    <network>/model.weights.h5        one folder for each network

Nothing in it is executed or unpickled: JSON, text, and HDF5 arrays only.
"""

import json
import os
import shutil
from pathlib import Path

import h5py

from keras_corrupt import tokenizers

FORMAT = "keras_corrupt/1"


def write(directory, model):
    """Writes `model` to `directory`, whole or not at all."""
    directory = Path(directory)
    if directory.exists() and any(directory.iterdir()):
        _read_config(directory)  # refuses to overwrite anything but a preset
    temporary = directory.with_name(f".{directory.name}.{os.getpid()}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir(parents=True)
        for name, network in model.networks.items():
            (temporary / name).mkdir()
            network.save_weights(temporary / name / "model.weights.h5")
        if model.tokenizer is not None:
            model.tokenizer.save(temporary)
        content = {
            "format": FORMAT,
            "class": type(model).__name__,
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
    """Returns the name of the model class that a preset is of."""
    return _read_config(Path(directory))["class"]


def read(directory, cls):
    """Returns the constructor arguments and the tokenizer (or `None`)."""
    directory = Path(directory)
    if not directory.is_dir():
        raise ValueError(
            f"Unknown preset {str(directory)!r} for {cls.__name__}: neither one of "
            f"{sorted(cls.presets)} nor a directory."
        )
    content = _read_config(directory)
    if content["class"] != cls.__name__:
        raise ValueError(
            f"{directory} is a preset of {content['class']}, not of {cls.__name__}; "
            f"load it with {content['class']}.from_preset."
        )
    tokenizer = None
    if (directory / "tokenizer.json").exists():
        tokenizer = tokenizers.load(directory)
    return content["config"], tokenizer


def load_weights(directory, model):
    """Loads the weights of every network of `model`."""
    for name, network in model.networks.items():
        path = Path(directory) / name / "model.weights.h5"
        if not path.exists():
            raise ValueError(f"The preset {str(directory)!r} lacks {path}.")
        _refuse_external_data(path)
        try:
            network.load_weights(path)
        except Exception as error:
            raise ValueError(
                f"{path} does not hold the weights of {type(model).__name__}'s {name} "
                f"as its config.json describes it: {error}"
            ) from error


def _read_config(directory):
    path = directory / "config.json"
    try:
        content = json.loads(path.read_text())
        if content["format"] != FORMAT:
            raise ValueError(f"its format is {content['format']!r}, not {FORMAT!r}")
        if not isinstance(content["config"], dict) or not content["class"]:
            raise ValueError("its class or config is malformed")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{directory} is not a directory that save_to_preset wrote: "
            f"{path.name}: {error}"
        ) from error
    return content


def _refuse_external_data(path):
    # An HDF5 file can point at other files on the reader's disk.
    def check(group):
        for name in group:
            link = group.get(name, getlink=True)
            if not isinstance(link, h5py.HardLink):
                raise ValueError(f"{path} links to other data at {name!r}; refused.")
            item = group[name]
            if isinstance(item, h5py.Group):
                check(item)
            elif item.external or item.is_virtual:
                raise ValueError(f"{path} keeps {name!r} in another file; refused.")

    with h5py.File(path, "r") as file:
        check(file)
