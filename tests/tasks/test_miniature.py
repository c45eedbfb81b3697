"""The small files are read as the benchmarks' own are, and nothing is left out."""

import pytest

from keras_corrupt.tasks import miniature
from keras_corrupt.tasks.conll import TaggingTask
from keras_corrupt.tasks.glue import TASKS, GlueTask, WinogradTask
from keras_corrupt.tasks.squad import SquadTask
from keras_corrupt.tasks.tables import Columns, TableTask


@pytest.fixture(scope="module")
def glue(tmp_path_factory):
    return miniature.glue(tmp_path_factory.mktemp("glue"))["data"]


def assert_complete(task, labels=None):
    for name in ("train", "dev"):
        split = task.splits[name]
        assert len(split.examples) == 16 and not split.skipped
        assert labels is None or {*split.labels} == {*labels}


@pytest.mark.parametrize("name", TASKS)
def test_glue(name, glue):
    task = GlueTask(name, glue)
    assert_complete(task, task.labels or (0.0, 2.5, 5.0))
    assert task.splits["train"].labels[:4] == task.splits["dev"].labels[:4]


def test_candidates_of_wnli(glue):
    task = WinogradTask(glue)
    assert_complete(task, ("0", "1"))
    text, sentence = task.splits["train"].examples[1]
    assert text == "The dog sat on the ship and it was old."
    assert sentence == "The dog was old."


@pytest.mark.parametrize("version", ["1.1", "2.0"])
def test_squad(version, tmp_path):
    task = SquadTask(miniature.squad(tmp_path)["data"], version)
    assert_complete(task)
    unanswered = sum(not answers for answers in task.splits["train"].labels)
    assert unanswered == (8 if version == "2.0" else 0)
    for (question, context), answers in zip(
        task.splits["train"].examples, task.splits["train"].labels, strict=True
    ):
        place = question.removeprefix("Who sat on the ").removesuffix("?")
        assert (place in context) == bool(answers)
        assert all(context[start:].startswith(text) for text, start in answers)


def test_tags(tmp_path):
    task = TaggingTask("nouns", miniature.tagging(tmp_path))
    assert_complete(task)
    assert task.splits["train"].examples[0] == "The cat sat on the mat".split()
    assert task.splits["train"].labels[0] == ["O", "B-NOUN", *"OOOO"]


def test_a_table(tmp_path):
    task = TableTask(miniature.text(tmp_path)["train"], Columns("text", label="label"))
    assert not any(split.skipped for split in task.splits.values())
    assert sum(len(split.examples) for split in task.splits.values()) == 32
    assert {*task.splits["train"].labels} == {*miniature.NOUNS}
