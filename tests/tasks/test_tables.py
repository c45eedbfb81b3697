import gzip
import json

import pytest

from keras_corrupt.tasks.tables import (
    Columns,
    TableTask,
    describe_skipped,
    one_of,
    read_table,
    read_test,
    score_in,
)
from keras_corrupt.tasks.task import Split, hold_out

COLUMNS = Columns("text", label="label")


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def rows(*pairs):
    return "text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in pairs)


# === Reading ===


def test_tsv_has_no_quoting_and_csv_has(tmp_path):
    tsv = write(tmp_path / "a.tsv", 'label\tx\ttext\n1\t-\t"one\n0\t-\t a, "b" \r\n')
    split = read_table(tsv, COLUMNS)
    assert split.examples == ['"one', ' a, "b" ']
    assert split.labels == ["1", "0"]
    assert split.ids == ["0", "1"]
    csv = write(tmp_path / "a.csv", 'label,text\r\n1,"one, ""two""\nthree"\r\n0,four\n')
    assert read_table(csv, COLUMNS).examples == ['one, "two"\nthree', "four"]
    assert not split.skipped
    long = write(tmp_path / "b.csv", f"label,text\n1,{'x' * 200_000}\n")
    assert [*map(len, read_table(long, COLUMNS).examples)] == [200_000]


def test_jsonl_pairs_ids_and_values_that_are_no_strings(tmp_path):
    lines = [
        {"a": "one", "b": "zwei", "y": True, "n": 7},
        {"b": "vier", "a": "three", "y": 2, "n": "x", "more": [1]},
    ]
    path = write(tmp_path / "a.jsonl", "\n\n".join(map(json.dumps, lines)))
    split = read_table(path, Columns("a", "b", "y", "n"))
    assert split.examples == [("one", "zwei"), ("three", "vier")]
    assert split.labels == ["true", "2"]
    assert split.ids == ["7", "x"]
    unlabelled = read_table(path, Columns("b"))
    assert (unlabelled.examples, unlabelled.labels) == (["zwei", "vier"], None)


def test_pairs_by_number_in_any_order(tmp_path):
    path = write(tmp_path / "a.tsv", "one\tzwei\t1\ntwo\tdrei\t0\n")
    forth, back = (read_table(path, Columns(*c, 2)) for c in ((0, 1), (1, 0)))
    assert forth.examples == [("one", "zwei"), ("two", "drei")]
    assert back.examples == [("zwei", "one"), ("drei", "two")]


def test_gzip_byte_order_mark_and_no_header(tmp_path):
    path = tmp_path / "a.tsv.gz"
    whole = gzip.compress("\ufeffpositiv\tgut\nnegativ\tübel\n".encode())
    split = read_table(write(path, whole), Columns(1, label=0))
    assert split.examples == ["gut", "übel"]
    assert split.labels == ["positiv", "negativ"]
    with pytest.raises(ValueError, match=r"a\.tsv\.gz is damaged or cut short"):
        read_table(write(path, whole[:-12]), Columns(1, label=0))
    with pytest.raises(ValueError, match="damaged or cut short"):
        read_table(write(path, "plain\ttext\n"), Columns(1, label=0))


def test_bad_rows_are_counted_with_the_first_line(tmp_path):
    lines = [
        b"text\tlabel\tx",
        b"fine\tyes\t\xff",  # what is not read may be anything
        b"too\tmany\tfields\there",
        b"few",
        b"  \tyes\t",
        b"bad \xff\tyes\t",
        b"",
        b"unknown\tmaybe\t",
        b"none\t\t",
        b"last\tno\t",
    ]
    path = write(tmp_path / "a.tsv", b"\n".join(lines))
    split = read_table(path, COLUMNS, one_of(["yes", "no"]))
    assert (split.examples, split.labels) == (["fine", "last"], ["yes", "no"])
    assert split.ids == ["0", "7"]  # counted from 0, blank lines not
    assert split.skipped == {
        "another number of fields than the first line": (2, "line 3"),
        "empty text": (1, "line 5"),
        "bytes that are not UTF-8": (1, "line 6"),
        "a label other than yes, no": (1, "line 8"),
        "empty label": (1, "line 9"),
    }
    assert describe_skipped(split.skipped).startswith(
        "2 with another number of fields than the first line (first: line 3), 1 with"
    )


def test_rows_to_be_labelled_are_kept_without_text(tmp_path):
    path = write(tmp_path / "a.tsv", "id\ta\tb\n5\tone\t\n6\ttwo\tthree\n")
    split = read_table(path, Columns("a", "b", id="id"))
    assert split.examples == [("one", ""), ("two", "three")]
    assert split.ids == ["5", "6"]


def test_bad_scores(tmp_path):
    pairs = [("a", "5"), ("b", "x"), ("c", "nan"), ("d", "inf"), ("e", " -1.5e0 ")]
    path = write(tmp_path / "a.tsv", rows(*pairs, ("f", "5.01")))
    split = read_table(path, COLUMNS, score_in())
    assert split.labels == [5, -1.5, 5.01]
    assert split.skipped == {"a score that is not a number": (3, "line 3")}
    split = read_table(path, COLUMNS, score_in((0, 5)))
    assert split.labels == [5]
    assert split.skipped["a score not from 0 to 5"] == (2, "line 6")


def test_bad_csv_and_json_lines(tmp_path):
    text = 'text,label\n"a",1\n"b"c,1\nd,0\n"e,1\nf,1\ng,1\n'
    split = read_table(write(tmp_path / "a.csv", text), COLUMNS)
    assert split.examples == ["a", "d"]
    counts = [(count, first) for count, first in split.skipped.values()]
    # A quote that is never closed takes all lines that follow with it.
    assert counts == [(1, "line 3"), (3, "line 5")]
    good = json.dumps({"text": "a", "label": "1"})
    bad = [
        "[]",
        "{",
        '{"text": ["a"], "label": "1"}',
        '{"text": "\\ud800", "label": 1}',
    ]
    bad += ['{"text": "b"}', '{"text": null, "label": 1}', "[" * 100_000]
    split = read_table(write(tmp_path / "a.jsonl", "\n".join([*bad, good])), COLUMNS)
    assert (split.examples, split.labels) == (["a"], ["1"])
    assert sum(count for count, _ in split.skipped.values()) == len(bad)
    assert split.skipped["something else than a JSON object"] == (3, "line 1")
    assert split.skipped["empty label"] == (1, "line 5")


@pytest.mark.parametrize(
    "name, content, columns, message",
    [
        ("a.tsv", "", COLUMNS, "no row that can be used: it is empty"),
        ("a.tsv", "text\tlabel\n", COLUMNS, "it is empty"),
        ("a.tsv", "a\tb\n1\t2\n", COLUMNS, r"no column 'text'; it has \['a', 'b'\]"),
        ("a.jsonl", '{"text": "b"}\n', COLUMNS, r"no column 'label'; .*\['text'\]"),
        ("a.tsv", "a\tb\n", Columns(0, label=2), r"no column 2; it has \[0, 1\]"),
        ("a.tsv", "text\tlabel\tlabel\na\t1\t1\n", COLUMNS, "two columns 'label'"),
        ("a.tsv", rows(("", "1"), ("", "0")), COLUMNS, "2 with empty text .*line 2"),
        ("a.txt", "text", COLUMNS, r"must be a \.tsv, \.csv or \.jsonl"),
        ("a.jsonl", "{}", Columns(0), "must be names"),
    ],
)
def test_files_that_do_not_fit(tmp_path, name, content, columns, message):
    with pytest.raises(ValueError, match=message):
        read_table(write(tmp_path / name, content), columns)


def test_wrong_columns():
    with pytest.raises(ValueError, match="a column of its own"):
        Columns("text", label="text")
    with pytest.raises(ValueError, match="a column of its own"):
        Columns("a", "a", "label")
    with pytest.raises(ValueError, match="all be names, or all be numbers"):
        Columns("text", label=0)


# === Tasks ===


def test_labels_metrics_and_guesses_come_from_training_data(tmp_path):
    train = write(tmp_path / "t.tsv", rows(*zip("abcd", "yxyz", strict=True)))
    dev = write(tmp_path / "d.tsv", rows(("e", "x"), ("f", "new"), ("g", "y")))
    test = write(tmp_path / "s.tsv", "label_of_nobody\ttext\n-\th\n")
    task = TableTask(train, COLUMNS, dev, test)
    assert task.name == "t"
    assert task.model_arguments == {
        "labels": ["x", "y", "z"],
        "score_range": None,
        "pairs": False,
    }
    assert task.splits["test"].labels is None
    guesses = task.guesses(task.splits["dev"])
    assert guesses == ["y"] * 3
    # Of the three classes only "y" is found, with one right prediction in three.
    assert task.metrics(guesses, task.splits["dev"]) == {
        "accuracy": pytest.approx(100 / 3),
        "macro_f1": pytest.approx(100 * (2 / 4) / 3),
    }
    assert task.main_metric == "accuracy"
    with pytest.raises(ValueError, match="no labels"):
        task.metrics(["x"], task.splits["test"])
    labelled = TableTask(train, COLUMNS, dev, dev, labels=["z", "y", "x"])
    assert labelled.splits["test"].labels == ["x", "new", "y"]
    zero = write(tmp_path / "zero.jsonl", '{"text": "a", "label": 0}\n')
    assert read_test(zero, COLUMNS, one_of()).labels == ["0"]
    # Rows without a label are to be labelled, too.
    some = write(tmp_path / "some.tsv", rows(("a", "x"), ("b", ""), ("c", " ")))
    with pytest.warns(UserWarning, match="some.tsv: 2 of 3 rows have no label"):
        to_label = TableTask(train, COLUMNS, dev, some).splits["test"]
    assert (len(to_label), to_label.labels, to_label.skipped) == (3, None, {})
    # A row without anything, as spreadsheets write it, is none.
    blank = write(tmp_path / "blank.tsv", rows(("a", "x"), ("", "")))
    split = TableTask(train, COLUMNS, dev, blank).splits["test"]
    assert (split.labels, split.skipped) == (["x"], {"empty text": (1, "line 3")})
    assert labelled.model_arguments["labels"] == ["z", "y", "x"]


def test_a_label_that_train_lacks_counts_as_wrong(tmp_path):
    train = write(tmp_path / "t.tsv", rows(("a", "x"), ("b", "y"), ("c", "odd")))
    dev = write(tmp_path / "d.tsv", rows(("e", "x"), ("f", "new"), ("g", "new")))
    task = TableTask(train, COLUMNS, dev, labels=["x", "y"])
    assert task.splits["train"].skipped == {"a label other than x, y": (1, "line 4")}
    split = task.splits["dev"]
    assert (split.labels, split.skipped) == (["x", "new", "new"], {})
    assert task.unseen == {"train": {}, "dev": {"new": 2}}
    assert task.metrics(["x"] * 3, split)["accuracy"] == pytest.approx(100 / 3)
    # Of scores none is wrong for being beyond those of the training examples.
    low = write(tmp_path / "low.tsv", rows(("a", "1"), ("b", "2")))
    high = write(tmp_path / "high.tsv", rows(("a", "7"), ("b", "9")))
    for score_range in (None, (0, 5)):
        task = TableTask(low, COLUMNS, high, regression=True, score_range=score_range)
        assert task.splits["dev"].labels == [7, 9] and task.unseen == {}


def test_scores(tmp_path):
    train = write(tmp_path / "t.tsv", rows(("a", "2"), ("b", "4"), ("c", "-3")))
    task = TableTask(train, COLUMNS, dev=train, regression=True)
    assert task.model_arguments == {
        "labels": None,
        "score_range": [-3, 4],
        "pairs": False,
    }
    assert task.guesses(task.splits["dev"]) == [1, 1, 1]
    assert task.metrics([2, 3, 1], task.splits["dev"])["spearman"] == 100
    assert task.main_metric == "spearman"
    task = TableTask(train, COLUMNS, train, regression=True, score_range=(0, 5))
    assert task.splits["train"].labels == [2, 4]
    assert task.model_arguments["score_range"] == [0, 5]


def test_dev_is_held_out_of_train_in_the_same_way_every_time(tmp_path):
    pairs = [(f"text {i}", i % 3) for i in range(50)]
    train = write(tmp_path / "t.tsv", rows(*pairs, ("", "1")))
    first, second = (TableTask(train, COLUMNS, dev_fraction=0.3) for _ in range(2))
    assert first.splits == second.splits
    parts = [first.splits["train"], first.splits["dev"]]
    assert [len(part) for part in parts] == [35, 15]
    found = [row for p in parts for row in zip(p.examples, p.labels, strict=True)]
    assert sorted(found) == sorted((text, str(label)) for text, label in pairs)
    assert parts[0].skipped and not parts[1].skipped
    rare = ["rare" if i in (3, 4, 5, 6) else "usual" for i in range(40)]
    rows_of = Split([str(i) for i in range(40)], rare, [str(i) for i in range(40)])
    for part, share in zip(hold_out(rows_of, 0.25), (3, 1), strict=True):
        assert part.labels.count("rare") == share
    small = hold_out(Split(["a", "b"], ["0", "1"], ["0", "1"]), 0.01)
    assert [len(part) for part in small] == [1, 1]


def test_tasks_that_cannot_be_trained(tmp_path):
    train = write(tmp_path / "t.tsv", rows(("a", "1"), ("b", "2")))
    empty = write(tmp_path / "e.tsv", rows())
    one = write(tmp_path / "o.tsv", rows(("a", "1"), ("b", "1")))
    with pytest.raises(ValueError, match=r"e\.tsv has no row that can be used"):
        TableTask(train, COLUMNS, empty)
    with pytest.raises(ValueError, match="All of the 2 training examples .* '1'"):
        TableTask(one, COLUMNS, train)
    gap = write(tmp_path / "g.tsv", rows(("a", "1"), ("", "2")))
    with pytest.raises(ValueError, match=r"Left out: 1 with .* \(first: line 3\)\."):
        TableTask(gap, COLUMNS, train)
    with pytest.raises(ValueError, match=r"give `dev`\. Left out: 1 with"):
        TableTask(gap, COLUMNS)
    with pytest.raises(ValueError, match="there must be two scores at least"):
        TableTask(one, COLUMNS, train, regression=True)
    with pytest.raises(FileNotFoundError, match="absent.tsv is not a file"):
        TableTask(train, COLUMNS, tmp_path / "absent.tsv")
    with pytest.raises(ValueError, match="which column has the label"):
        TableTask(train, Columns("text"), train)
    with pytest.raises(ValueError, match="`labels` are for classes"):
        TableTask(train, COLUMNS, train, labels=["1"], regression=True)
    with pytest.raises(ValueError, match="`regression=True`"):
        TableTask(train, COLUMNS, train, score_range=(0, 1))
    with pytest.raises(ValueError, match="`dev_fraction` must be above 0.*; got 1"):
        TableTask(train, COLUMNS, dev_fraction=1)
    with pytest.raises(ValueError, match=r"`score_range` must be the least.*\(5, 0\)"):
        TableTask(train, COLUMNS, regression=True, score_range=(5, 0))


def test_predictions_are_written_whole(tmp_path):
    train = write(tmp_path / "t.tsv", rows(("a", "1"), ("b", "2")))
    test = write(tmp_path / "s.jsonl", '{"text": "é", "key": "k9"}\n')
    columns = Columns("text", label="label")
    task = TableTask(train, columns, train, test, name="mine")
    path = task.write_predictions(["2"], "test", tmp_path / "new" / "folder")
    assert path.read_text() == "id\tprediction\n0\t2\n"
    assert path.name == "mine-test.tsv"
    with pytest.raises(ValueError, match="1 examples, but 2 predictions"):
        task.write_predictions(["2", "2"], "test", path.parent)
    assert [p.name for p in path.parent.iterdir()] == ["mine-test.tsv"]
