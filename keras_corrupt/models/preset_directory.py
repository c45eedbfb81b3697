"""The files of a saved preset.

    config.json                       format, class and constructor arguments
    tokenizer.json and others         when the model has a tokenizer
    <network>/model.safetensors       one folder for each network

What its source did not have is listed as `left_out` in `config.json`.
Nothing in it is executed or unpickled: JSON, text, and plain arrays only. Whatever is
wrong with it is a `ValueError` that names it, and costs no more than its files' size.
"""

import contextlib
import glob
import json
import os
import shutil
import warnings
from pathlib import Path

import keras
import numpy as np

from keras_corrupt import tokenizers
from keras_corrupt.models import safetensors_weights
from keras_corrupt.models.named_variables import named_weights
from keras_corrupt.models.preset_sizes import check_sizes
from keras_corrupt.models.registry import find_class, registered_name
from keras_corrupt.tokenizers.reading import read_text

FORMAT = "keras_corrupt/2"
_MAX_CONFIG_BYTES = 1 << 22
_MAX_WEIGHTS_BYTES = 1 << 34
_REMEDY = "Restore the preset from where it came, or save it anew."


def write(directory, model, dtype=None, left_out=()):
    """Writes `model` to `directory`, whole or not at all.

    Args:
        directory: A new or empty directory, or a preset to overwrite.
        model: The model.
        dtype: Precision of the weights, the variables' own if not given.
        left_out: Names of networks whose weights mean nothing and are not written.
    """
    directory = recovered(os.path.realpath(directory))  # not a link that is replaced
    if directory.exists() and not (directory.is_dir() and _is_empty(directory)):
        _read_config(directory)  # refuses to overwrite anything but a preset
    for left in (*_left_behind(directory, "tmp"), *_left_behind(directory, "old")):
        shutil.rmtree(left, ignore_errors=True)
    temporary = _beside(directory, os.getpid(), "tmp")
    try:
        temporary.mkdir(parents=True)
        for name, network in model.networks.items():
            if name in left_out:
                continue
            (temporary / name).mkdir()
            path = temporary / name / safetensors_weights.FILE
            safetensors_weights.save(path, network, dtype)
        if model.tokenizer is not None:
            model.tokenizer.save(temporary)
        content = {
            "format": FORMAT,
            "class": registered_name(type(model)),
            "tokenizer": getattr(model.tokenizer, "fingerprint", None),
            "config": model.get_config(),
            **({"left_out": list(left_out)} if left_out else {}),
        }
        (temporary / "config.json").write_text(json.dumps(content, indent=2) + "\n")
        if directory.exists():
            old = _beside(directory, os.getpid(), "old")
            directory.rename(old)
            temporary.rename(directory)
            old.rename(temporary)  # so that what is called old is always whole
            shutil.rmtree(temporary)
        else:
            temporary.rename(directory)
    except BaseException:
        recovered(directory)
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def recovered(directory):
    """Returns the path of a preset; moves it back if its replacement was broken off.

    Between two renames nothing is at the path.
    """
    directory = Path(directory)
    if not directory.exists():
        for old in _left_behind(directory, "old"):
            with contextlib.suppress(OSError):  # another process was faster
                old.rename(directory)
    return directory


def find_model_class(directory, base):
    """Returns the class that a preset is of.

    Args:
        directory: The preset.
        base: The class that it must be derived from, or a tuple of such.

    Raises:
        ValueError: It is no preset, or of a class that is not known.
    """
    name = _read_config(recovered(directory))["class"]
    try:
        return find_class(name, base)
    except ValueError as error:
        raise ValueError(f"{directory} cannot be loaded: {error}") from error


def read(directory, cls):
    """Returns the constructor arguments and the tokenizer (or `None`).

    Raises:
        ValueError: It is no preset of `cls`, or one whose files do not fit together.
    """
    directory = recovered(directory)
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
    counts = [_counted(p) for p in directory.glob(f"*/{safetensors_weights.FILE}")]
    arrays, numbers = np.sum(counts, axis=0, dtype=object) if counts else (0, 0)
    with _refusing(directory / "config.json"):
        check_sizes(cls, content["config"], arrays, numbers)
    tokenizer = None
    with _refusing(directory):
        if (directory / "tokenizer.json").exists():
            tokenizer = tokenizers.load(directory)
        fingerprint = getattr(tokenizer, "fingerprint", None)
        if content["tokenizer"] != fingerprint:
            raise ValueError("its tokenizer is not the one that it was saved with")
    return content["config"], tokenizer


def has_network(directory, name):
    """Whether a preset has the weights of a network; some leave the generator out."""
    return (recovered(directory) / name).is_dir()


def load(directory, cls, config, tokenizer, partial=False, remedy=_REMEDY):
    """Makes a model and loads its weights.

    Args:
        directory: The preset.
        cls: The model's class.
        config: Its constructor's arguments: those that `read` returned, or some
            changed.
        tokenizer: The tokenizer.
        partial: Whether networks that the preset has not keep their new weights. Those
            that it says are left out do so anyway, with a warning.
        remedy: What the error says to do about arguments or weights that do not fit.

    Returns:
        The model. Its `left_out` are the names of networks with new weights.

    Raises:
        ValueError: The arguments make no model, or the weights are another one's.
    """
    directory = Path(directory)
    with _refusing(directory / "config.json", remedy=remedy):
        model = cls(**config, tokenizer=tokenizer)
    left_out = _read_config(directory).get("left_out", [])
    new = []
    for name, network in model.networks.items():
        if (partial or name in left_out) and not has_network(directory, name):
            new.append(name)
            if not partial:
                warnings.warn(
                    f"The preset has no {name}; the model gets a new one.", stacklevel=4
                )
            continue
        path = directory / name / safetensors_weights.FILE
        _check_file(path)
        with _refusing(
            path,
            f"does not hold the weights of {cls.__name__}'s {name} as its config.json "
            "describes it: ",
            remedy,
        ):
            safetensors_weights.load(path, network)
            for weight, variable in named_weights(network).items():
                if not np.isfinite(keras.ops.convert_to_numpy(variable)).all():
                    raise ValueError(f"{weight} has NaN or infinity")
    model.left_out = tuple(new)
    return model


@contextlib.contextmanager
def _refusing(path, what="", remedy=_REMEDY):
    """Makes an error of whatever kind one that names `path`.

    Constructors and the readers of files raise whatever foreign content makes them.
    """
    try:
        yield
    except Exception as error:
        text = " ".join(str(error).split())[:500].rstrip(".")
        if not isinstance(error, ValueError):
            text = f"{type(error).__name__} {text}"
        raise ValueError(f"{path}: {what}{text}. {remedy}") from error


def _counted(path):
    _check_file(path)
    with _refusing(path):
        return safetensors_weights.count(path)


def _check_file(path):
    with _refusing(path):
        if not path.is_file():
            raise ValueError("there is no such file")
        if path.stat().st_size > _MAX_WEIGHTS_BYTES:
            raise ValueError(f"it is larger than {_MAX_WEIGHTS_BYTES:,} bytes")


def _read_config(directory):
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


def _no_number(text):
    raise ValueError(f"{text} is no number")


def _is_empty(directory):
    return not any(directory.iterdir())


# === What stands beside a preset while it is replaced ===


def _beside(directory, process, kind):
    return directory.with_name(f".{directory.name}.{process}.{kind}")


def _left_behind(directory, kind):
    """Lists what processes that have ended left of a kind, or this one."""
    pattern = f".{glob.escape(directory.name)}.*.{kind}"
    found = []
    for path in directory.parent.glob(pattern):
        process = path.name.split(".")[-2]
        named_so = process.isdecimal() and path == _beside(directory, process, kind)
        if named_so and not _runs(int(process)):
            found.append(path)
    return found


def _runs(process):
    if process == os.getpid():
        return False
    if os.name == "nt":  # where the question would be a Ctrl-C
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True
