import json

import numpy as np
import pytest

from keras_corrupt.tasks.multi_label import MultiLabelTask
from keras_corrupt.tasks.tables import Columns

COLUMNS = Columns("text", label="labels")
ROWS = [
    ("a song", "sad | slow"),
    ("a hymn", "slow"),
    ("a noise", ""),
    ("a march", "loud|fast|loud"),
]


@pytest.fixture
def train(tmp_path):
    path = tmp_path / "songs.tsv"
    lines = ["text\tlabels", *("\t".join(row) for row in ROWS)]
    path.write_text("\n".join(lines) + "\n")
    return path


def make(train, **arguments):
    return MultiLabelTask(train, COLUMNS, train, separator="|", **arguments)


def test_labels_of_a_cell(train):
    task = make(train)
    labels = [["sad", "slow"], ["slow"], [], ["loud", "fast"]]
    assert task.splits["train"].labels == task.splits["dev"].labels == labels
    names = ["fast", "loud", "sad", "slow"]
    assert task.model_arguments == {"labels": names, "pairs": False}


def test_lists_in_json(tmp_path, train):
    path = tmp_path / "songs.jsonl"
    rows = [{"text": "a", "labels": ["sad", "sl|ow"]}, {"text": "b", "labels": {}}]
    rows.append({"text": "c", "labels": ["sad", None]})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    split = make(train, test=path).splits["test"]
    assert split.labels == [["sad", "sl|ow"]]
    assert sum(count for count, _ in split.skipped.values()) == 2


def test_given_labels_leave_out_rows_with_others(train):
    task = make(train, labels=["sad", "slow"])
    assert task.splits["train"].labels == [["sad", "slow"], ["slow"], []]
    reason = "the label loud, which is not among those given"
    assert task.splits["train"].skipped == {reason: (1, "line 5")}
    assert task.unseen == {"train": {}, "dev": {"loud": 1, "fast": 1}}


def test_metrics_by_hand(train):
    task = make(train, labels=["sad", "slow"])
    predictions = [["sad"], ["sad", "slow"], [], ["slow"]]
    found = task.metrics(predictions, task.splits["dev"])
    # Right: sad of the first, slow of the second; wrong: sad, slow; missed: slow, loud,
    # fast.
    assert found["micro_f1"] == pytest.approx(100 * 4 / (4 + 2 + 3))
    assert found["macro_f1"] == pytest.approx(100 * (2 / 3 + 1 / 2 + 0 + 0) / 4)
    assert found["exact_match"] == 25


def test_guesses_are_the_best_that_look_at_no_text(train):
    task = make(train)
    guesses = task.guesses(task.splits["dev"])
    best = task.metrics(guesses, task.splits["dev"])["micro_f1"]
    for labels in (["slow"], ["slow", "sad"], ["slow", "sad", "fast", "loud"], []):
        other = task.metrics([labels] * 4, task.splits["dev"])["micro_f1"]
        assert other <= best + 1e-9


def test_presence_weighs_as_much_as_absence(train):
    weights = make(train, balance=True).model_arguments["label_weights"]
    np.testing.assert_allclose(weights, [3, 3, 3, 1])


def test_predictions_are_lists_in_a_table(train, tmp_path):
    path = make(train).write_predictions([["sad"], [], ["é"], []], "dev", tmp_path)
    assert path.read_text() == ('id\tprediction\n0\t["sad"]\n1\t[]\n2\t["é"]\n3\t[]\n')


def test_a_model_knows_that_it_learned_from_pairs(train, tmp_path):
    assert make(train).model_arguments["pairs"] is False
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("text\tother\tlabels\na\tb\tsad\nc\td\tslow\n")
    columns = Columns("text", "other", "labels")
    assert MultiLabelTask(pairs, columns, pairs).model_arguments["pairs"]


def test_one_label_is_refused(train):
    with pytest.raises(ValueError, match="Does ';' stand between them"):
        MultiLabelTask(train, COLUMNS, labels=["sad"], separator=";")
