"""The files of a preset.

    config.json                       format, class and constructor arguments
    tokenizer.json and others         when the model has a tokenizer
    <network>/model.safetensors       one folder for each network

What its source did not have is listed as `left_out` in `config.json`.
Nothing in it is executed or unpickled: JSON, text, and plain arrays only. Whatever is
wrong with it is a `ValueError` that names it, and costs no more than its files' size.
"""

import contextlib
import hashlib
import json
import os
from pathlib import Path

import numpy as np

from keras_corrupt import tokenizers
from keras_corrupt.files.whole_directory import recovered, whole_directory
from keras_corrupt.presets import weights
from keras_corrupt.presets.locations import directory_of
from keras_corrupt.presets.registry import registered_name
from keras_corrupt.tokenizers.reading import read_text

FORMAT = "keras_corrupt/2"
_MAX_CONFIG_BYTES = 1 << 26
REMEDY = "Restore the preset from where it came, or save it anew."


def write(directory, model, dtype=None, untrained=()):
    """Writes `model` to `directory`, whole or not at all.

    Args:
        directory: A new or empty directory, or a preset to overwrite.
        model: The model.
        dtype: Precision of the weights, the variables' own if not given.
        untrained: Names of networks whose weights mean nothing and are not written.
    """
    directory = recovered(os.path.realpath(directory))  # not a link that is replaced
    is_empty = directory.is_dir() and not any(directory.iterdir())
    if directory.exists() and not is_empty:
        read_config(directory)  # refuses to overwrite anything but a preset
    with whole_directory(directory) as temporary:
        for name, network in model.networks.items():
            if name not in untrained:
                (temporary / name).mkdir()
                weights.save(temporary / name / weights.FILE, network, dtype)
        if model.tokenizer is not None:
            model.tokenizer.save(temporary)
        content = {
            "format": FORMAT,
            "class": registered_name(type(model)),
            "tokenizer": getattr(model.tokenizer, "fingerprint", None),
            "config": model.get_config(),
            **({"left_out": list(untrained)} if untrained else {}),
        }
        (temporary / "config.json").write_text(json.dumps(content, indent=2) + "\n")


def read_config(directory):
    """Returns the content of a preset's `config.json`, a dict.

    Raises:
        ValueError: It is none that `write` wrote.
    """
    path = directory / "config.json"
    try:
        if not path.is_file():
            raise ValueError("there is no such file")
        text = read_text(path, _MAX_CONFIG_BYTES)
        content = json.loads(text, parse_constant=_no_number)
        if content["format"] != FORMAT:
            raise ValueError(f"its format is {content['format']!r}, not {FORMAT!r}")
        well_formed = (
            isinstance(content["class"], str)
            and isinstance(content["config"], dict)
            and isinstance(content["config"].get("dtype", ""), str)
            and isinstance(content.get("left_out", []), list)
        )
        if not well_formed:
            raise ValueError("its class, config or left_out is malformed")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{directory} is not a directory that save_to_preset wrote: "
            f"{path.name}: {error}. Give one that it wrote or, to save, a new one."
        ) from error
    return content


def read_tokenizer(directory, fingerprint):
    """Returns the tokenizer that has a fingerprint; `None` where that is `None`.

    Raises:
        ValueError: It is damaged, or another one.
    """
    with refusing(directory):
        tokenizer = None
        if (directory / "tokenizer.json").exists():
            tokenizer = tokenizers.load(directory)
        if fingerprint != getattr(tokenizer, "fingerprint", None):
            raise ValueError("its tokenizer is not the one that it was saved with")
    return tokenizer


def count_weights(directory):
    """Returns how many arrays all networks have, and how many numbers."""
    counts = []
    for path in directory.glob(f"*/{weights.FILE}"):
        with refusing(path):
            counts.append(weights.count(path))
    return np.sum(counts, axis=0, dtype=object) if counts else (0, 0)


def content_hash(preset):
    """Returns a hash of a preset's files, the same wherever they are."""
    digest = hashlib.sha256()
    for path in sorted(Path(directory_of(preset)).rglob("*")):
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@contextlib.contextmanager
def refusing(path, prefix="", remedy=REMEDY):
    """Makes an error of whatever kind one that names `path`.

    Constructors and the readers of files raise whatever foreign content makes them.
    """
    try:
        yield
    except Exception as error:
        text = " ".join(str(error).split())[:500].rstrip(".")
        if not isinstance(error, ValueError):
            text = f"{type(error).__name__} {text}"
        raise ValueError(f"{path}: {prefix}{text}. {remedy}") from error


def _no_number(text):
    raise ValueError(f"{text} is no number")
