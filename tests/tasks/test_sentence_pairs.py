import numpy as np
import pytest

from keras_corrupt.tasks import miniature
from keras_corrupt.tasks.sentence_pairs import (
    pairs_of_glue,
    pairs_of_tables,
    with_strangers,
)
from keras_corrupt.tasks.tables import Columns
from keras_corrupt.tasks.task import Split

COLUMNS = Columns("text", "second_text")


def write(path, header, *rows):
    path.write_text("".join("\t".join(row) + "\n" for row in (header, *rows)))
    return str(path)


def test_pairs_with_hard_negatives_and_a_file_of_scores(tmp_path):
    header = ("text", "second_text", "wrong")
    rows = [("a", "A", "x"), ("b", "", "y"), ("c", "C", " "), ("d", "D", "z")]
    train = write(tmp_path / "pairs.tsv", header, *rows)
    header = ("text", "second_text", "score")
    dev = write(tmp_path / "dev.tsv", header, ("e", "E", "4.5"), ("f", "F", "high"))
    columns = Columns("text", "second_text", third_text="wrong")
    task = pairs_of_tables(train, columns, dev, temperature=0.1)
    assert task.name == "pairs" and task.model_arguments == {"temperature": 0.1}
    assert task.splits["train"].examples == [("a", "A", "x"), ("d", "D", "z")]
    assert task.splits["train"].skipped == {"empty text": (2, "line 3")}
    split = task.splits["dev"]
    assert (split.examples, split.labels) == ([("e", "E")], [4.5])
    assert split.skipped == {"a score that is not a number": (1, "line 3")}
    assert task.main_metric == "spearman"


def test_held_out_pairs_are_told_from_others(tmp_path):
    rows = [(f"a{i}", f"b{i}") for i in range(20)]
    train = write(tmp_path / "pairs.tsv", ("text", "second_text"), *rows)
    task = pairs_of_tables(train, COLUMNS, dev_fraction=0.25)
    dev, training = task.splits["dev"], task.splits["train"]
    assert len(training) == 15 and len(dev) == 10 == len({*dev.ids})
    assert {*training.examples} | {*dev.examples[:5]} == {*rows}
    numbers = np.array([[a[1:] == b[1:]] for a, b in dev.examples])[:, 0]
    assert numbers.tolist() == dev.labels == [1] * 5 + [0] * 5
    found = task.metrics([0.9] * 4 + [0.2] + [0.1] * 4 + [0.5], dev)
    assert found == {"auc": pytest.approx(96)}
    assert task.metrics(task.guesses(dev), dev) == {"auc": 50.0}
    path = task.write_predictions(dev.labels, "dev", tmp_path)
    assert path.read_text().splitlines()[:2] == ["id\tprediction", f"{dev.ids[0]}\t1.0"]
    with pytest.raises(ValueError, match="`dev_fraction`"):
        pairs_of_tables(train, COLUMNS, dev_fraction=0.05)


def test_no_stranger_is_a_pair_of_the_file(tmp_path):
    """Questions with the same answer stand together."""
    rows = [(f"question {i}", f"answer {i // 10}") for i in range(40)]
    train = write(tmp_path / "faq.tsv", ("text", "second_text"), *rows)
    dev = pairs_of_tables(train, COLUMNS, dev_fraction=0.5).splits["dev"]
    assert dev.labels == [1] * 20 + [0] * 20
    assert not {*dev.examples[20:]} & {*rows}
    train = write(tmp_path / "one.tsv", ("text", "second_text"), *rows[:10])
    with pytest.raises(ValueError, match="leaves nothing to tell them from"):
        pairs_of_tables(train, COLUMNS, dev_fraction=0.5)


def test_no_text_is_a_stranger_to_itself_or_to_its_pair():
    pairs = [("A", "B"), ("C", "A"), ("B", "D")]
    split = with_strangers(Split(pairs, [1.0] * 3, ["0", "1", "2"]))
    assert split.examples[3:] == [("A", "D"), ("C", "D")]


def test_glue_has_pairs_that_mean_the_same(tmp_path):
    task = pairs_of_glue(miniature.glue(tmp_path)["data"])
    # Four of sixteen nouns have MNLI's first label of three, eight the second of two.
    counts = {"MNLI": 8, "QQP": 8, "MRPC": 8}
    assert len(task.splits["train"]) == sum(counts.values())
    assert [*task.splits] == ["train", "dev"]
    assert {*task.splits["dev"].labels} == {0.0, 2.5, 5.0}
