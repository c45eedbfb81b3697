"""Checkpoints that continue a run exactly: everything that training changes."""

import json
import os
import re
import zipfile
from pathlib import Path

import numpy as np

from keras_corrupt.devices.distribution import ALONE


class CheckpointError(RuntimeError):
    """A checkpoint could not be written or read."""


class Checkpoints:
    """The checkpoints in a directory: write, find, restore.

    One holds all variables of the model (weights and the states of its random
    number generators) and of its optimizer (moments, counters, averages), and the
    number of steps done, which fixes the position in the data. Each is a NumPy
    archive without pickles, written under another name and renamed when complete.
    Nothing in it depends on the number of devices or processes. Of several processes
    the first writes and reads, and only it need see the directory.

    Args:
        directory: Where they are; made when the first is written.
        keep: How many of the latest to keep.
        distribution: The run's `Distribution`.
    """

    def __init__(self, directory, keep=2, distribution=ALONE):
        self.directory = Path(directory)
        self.keep = keep
        self.distribution = distribution

    def steps(self):
        """Returns the steps of the complete checkpoints, in order."""
        if not self.directory.is_dir():
            return []
        found = (
            re.fullmatch(r"step-(\d+)\.npz", path.name)
            for path in self.directory.iterdir()
        )
        return sorted(int(match[1]) for match in found if match)

    def path(self, step):
        """Returns the file of the checkpoint after `step` steps."""
        return self.directory / f"step-{step:09d}.npz"

    def save(self, model, step):
        """Writes the state of `model` after `step` steps.

        Raises:
            CheckpointError: It could not be written, for lack of space, say. Earlier
                checkpoints are untouched.
        """
        self.distribution.together(lambda: self._write(model, step), first_only=True)

    def _write(self, model, step):
        path = self.path(step)
        temporary = path.with_name(f"{path.name}.tmp")
        arrays, description = state(model)
        description["step"] = step
        text = np.frombuffer(json.dumps(description).encode(), np.uint8)
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            with open(temporary, "wb") as file:
                np.savez(file, description=text, **arrays)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            last = self.steps()
            kept = f"The last one is {self.path(last[-1])}." if last else "None exists."
            raise CheckpointError(
                f"Could not write the checkpoint {path}: {error.strerror or error}. "
                f"Free space or choose another output directory, then run the same "
                f"command again to continue. {kept}"
            ) from error
        for old in self.steps()[: -self.keep]:
            self.path(old).unlink()

    def restore(self, model):
        """Loads the latest readable checkpoint into `model`, built and compiled.

        Returns:
            The number of steps done, 0 if there is no checkpoint.

        Raises:
            CheckpointError: There are checkpoints and none can be read, or the
                model is not the one that wrote it.
        """
        step, arrays = self.distribution.together(
            lambda: self._read_latest(model), first_only=True
        ) or (0, {})
        step = int(self.distribution.from_first({"step": np.int32(step)})["step"])
        if step:
            arrays = self.distribution.from_first(arrays or state(model)[0])
            for name, variable in _variables(model):
                variable.assign(arrays[name])
        return step

    def _read_latest(self, model):
        unreadable = []
        for step in reversed(self.steps()):
            try:
                # Opened here, because NumPy leaves a damaged file open.
                with (
                    open(self.path(step), "rb") as file,
                    np.load(file, allow_pickle=False) as archive,
                ):
                    arrays = {name: archive[name] for name in archive.files}
                    description = json.loads(bytes(arrays.pop("description")))
            except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as e:
                unreadable.append(f"{self.path(step)}: {e}")
                continue
            _check(model, description, self.path(step))
            return step, arrays
        if unreadable:
            raise CheckpointError(
                "No checkpoint can be read. Remove them to start anew:\n  "
                + "\n  ".join(unreadable)
            )
        return 0, {}


def state(model):
    """Returns the arrays of a model and its optimizer, and what describes them."""
    arrays = {name: _to_numpy(variable) for name, variable in _variables(model)}
    described = [
        # The own name only: a path may hold a count of the objects made before it.
        [name, variable.name, list(variable.shape), str(variable.dtype)]
        for name, variable in _variables(model)
    ]
    return arrays, {"variables": described}


def _check(model, description, path):
    _, expected = state(model)
    if expected["variables"] != description.get("variables"):
        raise CheckpointError(
            f"{path} was written by another model or optimizer. Use another "
            "output directory, or --init_from to take over weights only."
        )


def _variables(model):
    # Positions, not paths, are the names: two networks may have equal paths.
    for group, variables in (
        ("model", model.variables),
        ("optimizer", model.optimizer.variables),
    ):
        for i, variable in enumerate(variables):
            yield f"{group}.{i}", variable


def _to_numpy(variable):
    array = np.asarray(variable)
    # NumPy archives know no bfloat16; float32 holds its values exactly.
    return array.astype(np.float32) if array.dtype.kind == "V" else array
