"""What other libraries wrote, in place of a preset.

How it is read is not known here: `CONVERTER` is, in a folder that builds on this one,
and is imported where it is needed.
"""

import functools
import importlib
import json
import os
import random
import tempfile
from pathlib import Path

from keras_corrupt.tokenizers.reading import read_text

#: The module whose `convert(source, target)` writes a preset.
CONVERTER = "keras_corrupt.convert.conversion"
#: How addresses on hubs begin.
HUBS = ("hf://", "kaggle://")
#: Entries of a `config.json` that others write and presets have not.
_OTHERS = ("model_type", "registered_name")
_MAX_CONFIG_BYTES = 1 << 22


def is_foreign(preset):
    """Whether a preset's name is a path or an address of another library's files."""
    if not isinstance(preset, (str, os.PathLike)):
        return False
    if str(preset).startswith(HUBS):
        return True
    path = Path(preset)
    try:
        if path.with_name(f"{path.name}.index").exists():
            return True
        if not path.is_dir():
            return False
        if not (path / "config.json").exists():
            return any(path.glob("*.index"))
        content = json.loads(read_text(path / "config.json", _MAX_CONFIG_BYTES))
    except (OSError, ValueError, RecursionError):
        return False  # whatever it is, reading it as a preset will tell
    return isinstance(content, dict) and any(name in content for name in _OTHERS)


def converted(preset):
    """Returns a preset made of another library's files; it goes with the process.

    Args:
        preset: What `is_foreign`.

    Raises:
        ValueError: The files cannot be converted.
    """
    address = str(preset)
    if address.startswith(HUBS):
        return _converted(address, None)
    path = Path(address)
    files = path.rglob("*") if path.is_dir() else path.parent.glob(f"{path.name}.*")
    return _converted(os.path.abspath(path), max(f.lstat().st_mtime_ns for f in files))


@functools.cache
def _converted(source, changed):
    # `changed` tells files from those that were there before under the same name.
    target = Path(_folder().name) / str(_converted.cache_info().misses)
    # Weights that the files lack are drawn, the same ones in each process: kept results
    # know a preset by a hash of its files. Keras draws its seeds from `random`.
    state = random.getstate()
    random.seed(0)
    try:
        importlib.import_module(CONVERTER).convert(source, target)
    finally:
        random.setstate(state)
    return target


@functools.cache
def _folder():
    return tempfile.TemporaryDirectory(prefix="keras_corrupt_")
