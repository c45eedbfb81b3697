"""The tasks of continual pretraining, in their released format."""

import json

import pytest

from keras_corrupt.models import Electra
from keras_corrupt.tasks.domain_tasks import DOMAIN_TASKS, DomainTask


@pytest.fixture
def folder(tmp_path):
    rows = [("uses it", "Uses"), ("extends it", "Extends"), ("cites it", "Background")]
    for split, count in (("train", 9), ("dev", 3), ("test", 6)):
        lines = [
            json.dumps(
                {"text": rows[i % 3][0], "label": rows[i % 3][1], "metadata": {}}
            )
            for i in range(count)
        ]
        (tmp_path / f"{split}.jsonl").write_text("\n".join(lines))
    return tmp_path


def test_the_released_files_are_read(folder):
    task = DomainTask("acl_arc", folder)
    assert {name: len(split) for name, split in task.splits.items()} == {
        "train": 9,
        "dev": 3,
        "test": 6,
    }
    assert task.labels == ["Background", "Extends", "Uses"]
    assert task.splits["test"].labels is not None
    # One class of three is found, at a third of precision: F1 1/2, 0 and 0.
    metrics = task.metrics(["Uses"] * 6, task.splits["test"])
    assert metrics["macro_f1"] == pytest.approx(100 / 6)
    assert task.main_metric == "macro_f1"


def test_settings_go_over_the_papers_of_the_encoder(folder):
    for name, epochs in zip(DOMAIN_TASKS, (10, 10, 10, 3), strict=True):
        task = DomainTask(name, folder)
        base = Electra.fine_tuning("base", name).changed(task.fine_tuning("base"))
        assert (base.learning_rate, base.batch_size, base.epochs) == (2e-5, 16, epochs)
        assert (base.layer_decay, base.dropout, base.report) == (1.0, 0.1, "best")
        small = Electra.fine_tuning("small", name)
        changed = small.changed(task.fine_tuning("small"))
        assert changed.learning_rate == small.learning_rate


def test_published_scores_are_table_1s(folder):
    """In Zheng et al., for RoBERTa-Base."""
    acl, news = (DomainTask(name, folder) for name in ("acl_arc", "ag_news"))
    assert acl.published("base")["FE-MLM (test)"] == 76.24
    assert acl.published("base")["RoBERTa (test)"] == 63.0
    assert news.published("base")["FE-MLM, spans (test)"] == 94.13
    assert news.published("small") == {}


def test_tables_without_a_test_set_are_read(tmp_path):
    for split in ("train", "dev"):
        (tmp_path / f"{split}.tsv").write_text("text\tlabel\na b\tWorld\nc\tSports\n")
    task = DomainTask("ag_news", tmp_path)
    assert set(task.splits) == {"train", "dev"}
    assert task.labels == ["Sports", "World"]


def test_what_is_not_there(tmp_path):
    with pytest.raises(ValueError, match="'imdb' is none of the tasks acl_arc, scierc"):
        DomainTask("imdb", tmp_path)
    with pytest.raises(FileNotFoundError, match="train.jsonl"):
        DomainTask("scierc", tmp_path)
