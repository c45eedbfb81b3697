"""Checkpoints that continue a run exactly: everything that training changes."""

import hashlib
import json
import math
import re
import zipfile
from pathlib import Path

import keras
import numpy as np

from keras_corrupt.commands.frame import RunError
from keras_corrupt.devices.distribution import ONE_DEVICE
from keras_corrupt.files.whole import partial_of, whole_file
from keras_corrupt.presets.named_variables import named_variables
from keras_corrupt.training.phases import WHOLE_RUN

#: What a checkpoint's description says.
FORMAT = 2


class CheckpointError(RunError):
    """A checkpoint could not be written or read."""


class Checkpoints:
    """The checkpoints in a directory: write, find, restore.

    One holds all variables of the model (weights and the states of its random
    number generators) and of its optimizer (moments, counters, averages), the number
    of steps done, which fixes the position in the data, and the name of the phase
    that the optimizer is of. Each is a NumPy archive without pickles, written under
    another name and renamed when complete. Nothing in it depends on the number of
    devices or processes. The first of several processes writes and reads, and only it
    need see the directory.

    Any compiled `keras.Model` can be saved, whatever loop trains it.

    Args:
        directory: Where they are; made when the first is written.
        keep: How many of the latest to keep.
        distribution: The run's `Distribution`.
        data: The fingerprint of the examples, which a run must go on with.
        data_is: What `data` is the fingerprint of, for the error where it is another.
        last_stable_step: Steps up to which the last checkpoint is kept for good; `None`
            for none.
    """

    def __init__(
        self,
        directory,
        keep=2,
        distribution=ONE_DEVICE,
        data=None,
        data_is="examples",
        last_stable_step=None,
    ):
        self.directory = Path(directory)
        self.keep = keep
        self.distribution = distribution
        self.data = data
        self.data_is = data_is
        self.last_stable_step = last_stable_step

    def steps(self):
        """Returns the steps of the complete checkpoints, in order."""
        if not self.directory.is_dir():
            return []
        matches = (
            re.fullmatch(r"step-(\d+)\.npz", path.name)
            for path in self.directory.iterdir()
        )
        return sorted(int(match[1]) for match in matches if match)

    def path(self, step):
        """Returns the file of the checkpoint after `step` steps."""
        return self.directory / f"step-{step:09d}.npz"

    def save(self, model, step, phase=WHOLE_RUN):
        """Writes the state of `model` after `step` steps.

        Args:
            model: A `keras.Model`, built and compiled.
            step: Number of steps done.
            phase: Name of the phase that they ended in.

        Raises:
            CheckpointError: It could not be written, for lack of space, say. Earlier
                checkpoints are untouched.
        """
        self.distribution.in_all_processes(
            lambda: self._write(model, step, phase), first_only=True
        )

    def _write(self, model, step, phase):
        path = self.path(step)
        arrays = state(model)
        description = {
            "format": FORMAT,
            "step": step,
            "phase": phase,
            "data": self.data,
            "arrays": _fingerprint(arrays),
        }
        text = np.frombuffer(json.dumps(description).encode(), np.uint8)
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            with whole_file(path, "wb") as file:
                np.savez(file, description=text, **arrays)
        except OSError as error:
            notes = [f"The last checkpoint is {self.path(n)}." for n in self.steps()]
            note = (notes or ["There is no checkpoint."])[-1]
            raise CheckpointError(f"{error} {note}") from error
        # A process that died may have left some.
        for part in self.directory.glob(partial_of("step-*.npz").name):
            part.unlink()
        # A later one is none of this run's, or could not be read.
        steps = [saved for saved in self.steps() if saved <= step]
        stable = [saved for saved in steps if saved <= (self.last_stable_step or 0)]
        for old in steps[: -self.keep]:
            if old not in stable[-1:]:
                self.path(old).unlink()

    def restore(self, model, phase=WHOLE_RUN, up_to=math.inf):
        """Loads the latest readable checkpoint into `model`, built and compiled.

        One that an earlier phase wrote gives the model its variables; the optimizer,
        which is this phase's, stays as it is. A damaged one is passed over for the one
        before, with a line that says so.

        Args:
            model: A `keras.Model`.
            phase: Name of the phase that it is compiled for.
            up_to: Steps of the latest one to take.

        Returns:
            The number of steps done, 0 if there is no checkpoint.

        Raises:
            CheckpointError: There are checkpoints and none can be read, or the
                model is not the one that wrote it, or the examples are not those that
                it was trained on.
        """
        step, arrays = self.distribution.in_all_processes(
            lambda: self._read_latest(model, phase, up_to), first_only=True
        ) or (0, {})
        whole = any(name.startswith("optimizer/") for name in arrays)
        header = {"step": np.int32(step), "whole": np.int32(whole)}
        header = self.distribution.from_first(header)
        step = int(header["step"])
        if step:
            variables = all_variables(model) if header["whole"] else _of_model(model)
            arrays = arrays or {name: _to_numpy(v) for name, v in variables.items()}
            arrays = self.distribution.from_first(arrays)
            for name, variable in variables.items():
                variable.assign(arrays[name])
        return step

    def _read_latest(self, model, phase, up_to):
        unreadable = []
        for step in reversed([step for step in self.steps() if step <= up_to]):
            path = self.path(step)
            try:
                data, written_in, arrays = _read(path, step)
            # Damage makes the readers of archives and arrays raise anything.
            except Exception as error:
                reason = " ".join(str(error).split()) or type(error).__name__
                unreadable.append(f"{path}: {reason}")
                continue
            if None not in (data, self.data) and data != self.data:
                raise CheckpointError(
                    f"The {self.data_is} are not those that {path} was trained on. "
                    "Bring them back, or use another output directory."
                )
            expected = all_variables(model)
            if written_in != phase:
                expected = _of_model(model)
                arrays = {n: a for n, a in arrays.items() if n.startswith("model/")}
            _check(arrays, expected, path)
            for problem in unreadable:
                print(f"Passing over {problem}")
            return step, {name: arrays[name] for name in expected}
        if unreadable:
            raise CheckpointError(
                "No checkpoint can be read. Remove them to start anew:\n  "
                + "\n  ".join(unreadable)
            )
        return 0, {}


def _read(path, step):
    """Returns the data, the phase and the arrays of a checkpoint, whole and unchanged.

    Raises:
        Exception: It is damaged, of another format, or not the one after `step` steps.
    """
    if not path.is_file():
        raise ValueError("it is no file")
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            with archive.open(name) as file:
                arrays[name.removesuffix(".npy")] = _read_array(file)
    description = json.loads(bytes(arrays.pop("description")))
    if description["step"] != step:
        raise ValueError(f"it is the one of step {description['step']}")
    if (file_format := description.get("format")) != FORMAT:
        raise ValueError(f"its format is {file_format}, not {FORMAT}")
    if description["arrays"] != _fingerprint(arrays):
        raise ValueError("its arrays are not the saved ones")
    return description["data"], description["phase"], arrays


def _read_array(file):
    # As NumPy, but it would make room for whatever the array's header promises.
    version = np.lib.format.read_magic(file)
    if version != (1, 0):
        raise ValueError(f"an array of NumPy's format {version}")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    order = "F" if fortran else "C"
    return np.frombuffer(file.read(), dtype).reshape(shape, order=order)


def _fingerprint(arrays):
    """Returns the SHA-256 of the names, shapes and types of arrays."""
    lines = [f"{n} {a.shape} {a.dtype}" for n, a in sorted(arrays.items())]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def state(model):
    """Returns name -> array of all that training changes in a model."""
    return {name: _to_numpy(v) for name, v in all_variables(model).items()}


def all_variables(model):
    """Names the variables of a compiled model and of its optimizer.

    An optimizer's variable that belongs to one of the model's is named by it:
    `optimizer/momentums/encoder/embeddings/token/embeddings`.
    """
    variables = _of_model(model)
    names = {id(v): name.removeprefix("model/") for name, v in variables.items()}
    trainable = [names[id(v)] for v in model.trainable_variables]
    optimizer = model.optimizer
    saved = {id(variable) for variable in optimizer.variables}
    for attribute, value in vars(optimizer).items():
        prefix = f"optimizer/{attribute.strip('_')}"
        if isinstance(value, keras.Variable):
            variables |= {prefix: value} if id(value) in saved else {}
        elif attribute != "_variables" and _aligned(value, trainable):
            for name, variable in zip(trainable, value, strict=True):
                if isinstance(variable, keras.Variable) and id(variable) not in names:
                    variables[f"{prefix}/{name}"] = variable
    reached = {id(variable) for variable in variables.values()}
    lost = [v.path for v in optimizer.variables if id(v) not in reached]
    if lost:
        raise CheckpointError(
            f"A checkpoint cannot name these variables of {type(optimizer).__name__}: "
            f"{lost}. They must be attributes, alone or a list with one for each "
            "trainable variable."
        )
    return variables


def _aligned(value, trainable):
    return isinstance(value, list) and len(value) == len(trainable)


def _of_model(model):
    return {f"model/{name}": v for name, v in named_variables(model).items()}


def _check(arrays, variables, path):
    same = arrays.keys() == variables.keys() and all(
        arrays[name].shape == tuple(variable.shape)
        for name, variable in variables.items()
    )
    if not same:
        raise CheckpointError(
            f"{path} was written by another model or optimizer. Use another "
            "output directory, or --init_from to take over weights only."
        )


def _to_numpy(variable):
    array = np.asarray(variable)
    # NumPy archives know no bfloat16; float32 holds its values exactly.
    return array.astype(np.float32) if array.dtype.kind == "V" else array
