"""What other libraries wrote, in place of a preset."""

import functools
import os
import random
import tempfile
from pathlib import Path

from keras_corrupt.convert import hubs

#: Entries of a `config.json` that others write and presets have not.
_OTHERS = ("model_type", "registered_name")


def recognises(name):
    """Whether a preset's name is a path or an address of another library's files."""
    from keras_corrupt.convert.files import config_has  # needs Keras

    if not isinstance(name, (str, os.PathLike)):
        return False
    if hubs.is_address(name):
        return True
    path = Path(name)
    try:
        if path.with_name(f"{path.name}.index").exists():
            return True
        if path.is_dir() and not (path / "config.json").exists():
            return any(path.glob("*.index"))
        return any(config_has(path, entry) for entry in _OTHERS)
    except (OSError, ValueError):
        return False  # whatever it is, reading it as a preset will tell


def preset_of(name):
    """Returns a preset made of another library's files; it goes with the process.

    Args:
        name: What `recognises` recognises.

    Raises:
        ValueError: The files cannot be converted.
    """
    if hubs.is_address(name):
        return _converted(str(name), None)
    path = Path(name)
    files = path.rglob("*") if path.is_dir() else path.parent.glob(f"{path.name}.*")
    return _converted(os.path.abspath(path), max(f.lstat().st_mtime_ns for f in files))


@functools.cache
def _converted(source, changed):
    # `changed` tells files from those that were there before under the same name.
    from keras_corrupt.convert.conversion import convert  # needs Keras

    target = Path(_folder().name) / str(_converted.cache_info().misses)
    # Weights that the files lack are drawn, the same ones in each process: kept results
    # know a preset by a hash of its files. Keras draws its seeds from `random`.
    state = random.getstate()
    random.seed(0)
    try:
        convert(source, target)
    finally:
        random.setstate(state)
    return target


@functools.cache
def _folder():
    return tempfile.TemporaryDirectory(prefix="keras_corrupt_")
