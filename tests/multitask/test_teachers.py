"""Teachers' outputs: averaged, kept in files, refused where they do not fit."""

import dataclasses

import numpy as np
import pytest
from scipy.special import softmax

from keras_corrupt.downstream import TextClassifier
from keras_corrupt.multitask import MultiTaskModel
from keras_corrupt.multitask.teachers import key_of, read, teacher_outputs, write
from tests.downstream.conftest import ENCODER, scrambled
from tests.multitask.conftest import EXAMPLES, LABELS, TASKS


@pytest.fixture
def teachers(tokenizer, tmp_path):
    """Two models of one task and one of all, saved."""
    labels = TASKS["animals"]["labels"]
    models = [
        scrambled(TextClassifier(ENCODER, tokenizer, labels=labels)),
        scrambled(TextClassifier(ENCODER, tokenizer, labels=labels)),
        scrambled(MultiTaskModel(ENCODER, tokenizer, TASKS)),
    ]
    paths = [str(tmp_path / f"teacher-{i}") for i in range(3)]
    for model, path in zip(models, paths, strict=True):
        model.save_to_preset(path)
    return models, paths


@pytest.fixture
def student(tokenizer):
    model = TextClassifier(ENCODER, tokenizer, labels=TASKS["animals"]["labels"])
    return model, model.features(EXAMPLES["animals"], LABELS["animals"])


def test_an_ensembles_outputs_are_the_mean_and_come_from_the_file(
    teachers, student, tmp_path, monkeypatch
):
    models, paths = teachers
    model, features = student
    path = tmp_path / "outputs" / "animals.npz"
    found = teacher_outputs(path, paths, "animals", model, features)
    each = [
        np.stack([o["logits"] for o in m.outputs(features)])
        for m in (*models[:2], models[2].part("animals"))
    ]
    expected = np.mean([softmax(logits, axis=-1) for logits in each], axis=0)
    np.testing.assert_allclose(
        [row["label"] for row in found], expected, rtol=1e-5, atol=1e-7
    )
    # From the file, in any order, without the teachers.
    monkeypatch.setattr("keras_corrupt.multitask.teachers.load_preset", None)
    again = teacher_outputs(path, paths, "animals", model, features)
    np.testing.assert_array_equal(
        [row["label"] for row in again], [row["label"] for row in found]
    )
    (row,) = read(path, model, features[1:2])
    np.testing.assert_array_equal(row["label"], found[1]["label"])


@pytest.mark.parametrize("name", list(TASKS))
def test_every_kind_comes_back_from_its_file(name, tokenizer, tmp_path):
    model = scrambled(MultiTaskModel(ENCODER, tokenizer, TASKS)).part(name)
    features = model.features(EXAMPLES[name], LABELS[name])
    targets = model.soft_targets(features, model.outputs(features))
    head = {"class": type(model).__name__, **model.head_config}
    write(tmp_path / "x.npz", features, targets, head, ["a"])
    for was, now in zip(
        targets, read(tmp_path / "x.npz", model, features), strict=True
    ):
        assert was.keys() == now.keys()
        for key in was:
            np.testing.assert_allclose(now[key], was[key], rtol=1e-6)


def test_keys_are_of_what_a_model_reads(student):
    model, features = student
    assert len({key_of(feature) for feature in features}) == 3
    one, other = model.features(["the cat", ("the", "cat")])
    assert key_of(one) != key_of(other)
    # The label is no part of it; the same on any machine.
    assert key_of(one) == key_of(features[0])
    assert key_of(one) == "ab5de58622f85531fa1a9861c113d2c8"


def test_teachers_of_other_labels_are_refused(teachers, tokenizer, tmp_path):
    _, paths = teachers
    student = TextClassifier(ENCODER, tokenizer, labels=["dog", "cat"])
    features = student.features(["the cat"], ["cat"])
    path = tmp_path / "outputs.npz"
    message = r"teacher-2 has labels=\['cat', 'dog'\], but the student labels=\['dog'"
    with pytest.raises(ValueError, match=message):
        teacher_outputs(path, paths[2:], "animals", student, features)
    assert not path.exists()
    with pytest.raises(ValueError, match="Unknown task 'RTE'"):
        teacher_outputs(path, paths[2:], "RTE", student, features)


def test_damaged_and_foreign_files_are_refused(teachers, student, tmp_path):
    _, paths = teachers
    model, features = student
    path = tmp_path / "outputs.npz"
    teacher_outputs(path, paths[:1], "animals", model, features)
    whole = path.read_bytes()
    with pytest.raises(ValueError, match=r"is of the teachers \['teacher-0"):
        teacher_outputs(path, paths[1:2], "animals", model, features)
    new = model.features(["a slow dog"], ["dog"])
    with pytest.raises(ValueError, match="lacks 1 of 4 sequences, the first of exampl"):
        read(path, model, [*features, *new])
    for length in (0, 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="no whole file of teachers' outputs"):
            teacher_outputs(path, paths[:1], "animals", model, features)
        assert path.read_bytes() == whole[:length]  # left as it was
    changed = bytearray(whole)
    changed[len(whole) // 3] ^= 255
    path.write_bytes(changed)
    with pytest.raises(ValueError, match="outputs.npz"):
        read(path, model, features)


def test_nothing_is_left_of_a_file_that_cannot_be_written(student, tmp_path):
    model, features = student
    targets = [{"label": object()}] * 3
    with pytest.raises(TypeError):
        write(tmp_path / "x.npz", features, targets, {}, [])
    rows = model.soft_targets(features, model.outputs(features))
    bad = [dataclasses.replace] * 3  # no head that JSON could hold
    with pytest.raises(TypeError):
        write(tmp_path / "x.npz", features, rows, {"class": bad}, [])
    assert not list(tmp_path.iterdir())
