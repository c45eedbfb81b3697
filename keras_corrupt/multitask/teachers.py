"""What teachers put out for the training examples: computed once, kept in files.

A file knows each sequence by a hash of what a model reads of it, so that it serves any
order and part of the examples, on any machine. It is a NumPy archive without pickles:

    description     JSON: the format, the head, the teachers' fingerprints
    keys            the hash of each sequence
    shapes/NAME     of a target: its shape for each sequence
    values/NAME     its numbers, one sequence's after another's
"""

import hashlib
import json
from pathlib import Path

import numpy as np

from keras_corrupt.downstream import kept_results
from keras_corrupt.files.whole import whole_file
from keras_corrupt.presets import load_preset
from keras_corrupt.training.compiling import compiles_with_xla

FORMAT = "keras_corrupt/teacher_outputs/1"


def teacher_outputs(path, presets, name, model, features):
    """Returns what teachers put out for a task's sequences, from a file if it is there.

    Args:
        path: The file, a `Path`; written if it is not there.
        presets: The teachers: presets of the task's model, or of several tasks, which
            this is one of. Their outputs are averaged.
        name: The task.
        model: The student's model of the task, which decides what a target means.
        features: Features of the training examples, with their labels.

    Returns:
        For each feature a dict of soft targets: see `DownstreamModel.soft_targets`.

    Raises:
        ValueError: A teacher is of other labels or another tokenizer; or the file is
            damaged, of other teachers, or lacks a sequence.
    """
    fingerprints = [kept_results.fingerprint(preset) for preset in presets]
    if not path.is_file():
        targets = [_outputs_of(preset, name, model, features) for preset in presets]
        write(path, features, _mean(targets), _head(model), fingerprints)
    return read(path, model, features, fingerprints)


def read(path, model, features, fingerprints=None):
    """Reads a file of teachers' outputs.

    Args:
        path: The file.
        model: The student's model of the task.
        features: Those whose soft targets are wanted.
        fingerprints: Fingerprints of the teachers that wrote it; `None` for any.

    Raises:
        ValueError: See `teacher_outputs`.
    """
    path = Path(path)
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
        description = json.loads(bytes(arrays.pop("description")))
        right_format = description["format"] == FORMAT
        keys, rows = arrays.pop("keys").tolist(), _unpacked(arrays)
        row_of = dict(zip(keys, rows, strict=True))
    # Damage makes the readers of archives and arrays raise anything.
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(
            f"{path} is no whole file of teachers' outputs ({reason}). Delete it, and "
            "the same command makes it anew where the teachers are; or copy it again."
        ) from error
    if not right_format:
        raise ValueError(f"{path} has the format {description['format']!r}.")
    check_head(path, description["head"], _head(model))
    if fingerprints is not None and description["teachers"] != fingerprints:
        raise ValueError(
            f"{path} is of the teachers {description['teachers']}, not of "
            f"{fingerprints}. Delete it, and the same command makes it anew."
        )
    lacking = [f.example for f in features if key_of(f) not in row_of]
    if lacking:
        raise ValueError(
            f"{path} lacks {len(lacking):,} of {len(features):,} sequences, the first "
            f"of example {lacking[0]}: it is of other examples, another tokenizer or "
            "another `max_length`. Delete it, or choose another `output`."
        )
    return [row_of[key_of(feature)] for feature in features]


def write(path, features, targets, head, fingerprints):
    """Writes a file of teachers' outputs, whole or not at all."""
    description = {"format": FORMAT, "head": head, "teachers": fingerprints}
    arrays = {
        "description": np.frombuffer(json.dumps(description).encode(), np.uint8),
        "keys": np.array([key_of(feature) for feature in features]),
    }
    for name in targets[0]:
        values = [np.asarray(row[name], "float32") for row in targets]
        arrays[f"shapes/{name}"] = np.array([v.shape for v in values], "int32")
        arrays[f"values/{name}"] = np.concatenate([v.ravel() for v in values])
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path, "wb") as file:
        np.savez_compressed(file, **arrays)


def key_of(feature):
    """Returns the hash of what a model reads of a sequence."""
    digest = hashlib.sha256()
    for name, value in sorted(feature.inputs.items()):
        value = np.asarray(value, "<i4")
        digest.update(f"{name} {value.shape} ".encode() + value.tobytes())
    return digest.hexdigest()[:32]


def check_head(teacher, of_teacher, of_student):
    """Raises a `ValueError` where a teacher's outputs mean something else.

    Args:
        teacher: Its name.
        of_teacher: What its outputs mean: names and values.
        of_student: The same of the student's.
    """
    for name in sorted({*of_teacher, *of_student}):
        a, b = of_teacher.get(name), of_student.get(name)
        if a != b:
            raise ValueError(
                f"The teacher {teacher} has {name}={a!r}, but the student {name}={b!r}:"
                " they must be the same, in the same order."
            )


def _outputs_of(preset, name, model, features):
    teacher = load_preset(preset)
    if hasattr(teacher, "part"):
        teacher = teacher.part(name)
    teacher.jit_compile = compiles_with_xla()
    check_head(preset, _head(teacher), _head(model))
    if teacher.tokenizer.fingerprint != model.tokenizer.fingerprint:
        raise ValueError(
            f"The teacher {preset} has another tokenizer than the student, so that it "
            "does not read the same sequences."
        )
    return teacher.soft_targets(features, teacher.outputs(features))


def _head(model):
    """Returns what a teacher's outputs mean, as JSON holds it."""
    head = {"class": type(model).__name__, **model.head_config}
    return json.loads(json.dumps(head))


def _mean(of_teachers):
    return [
        {
            name: np.mean([np.asarray(row[name]) for row in rows], axis=0)
            for name in rows[0]
        }
        for rows in zip(*of_teachers, strict=True)
    ]


def _unpacked(arrays):
    """Returns a dict of arrays for each sequence."""
    names = [key.removeprefix("values/") for key in arrays if key.startswith("values/")]
    columns = {}
    for name in names:
        shapes = arrays[f"shapes/{name}"]
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
        if ends[-1] != len(arrays[f"values/{name}"]):
            raise ValueError(f"the numbers of {name} are not as many as their shapes")
        parts = np.split(arrays[f"values/{name}"], ends[:-1])
        columns[name] = [
            part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)
        ]
    rows = zip(*columns.values(), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]
