import sys
import types

import numpy as np
import pytest

from keras_corrupt.tasks.glue import TASKS, GlueTask
from keras_corrupt.tasks.glue.published_scores import published_scores

#: The header, or `None`, and a row with a label, of each task's training file.
FILES = {
    "CoLA": (None, "src\t{}\t*\tA cat sleeps.", "1"),
    "SST-2": ("sentence\tlabel", "A cat sleeps.\t{}", "1"),
    "MRPC": (
        "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String",
        '{}\t12\t13\t"A cat sleeps.\tIt "sleeps".',
        "1",
    ),
    "STS-B": (
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\t"
        "sentence2\tscore",
        "0\tg\tf\t2000\t1\tn\tn\tA cat sleeps.\tIt sleeps.\t{}",
        "3.800",
    ),
    "QQP": (
        "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate",
        "9\t1\t2\tWho sleeps?\tWho is asleep?\t{}",
        "1",
    ),
    "MNLI": (
        "index\tpairID\tsentence1_parse\tsentence1\tsentence2\tlabel1\tgold_label",
        "0\tp\t( A cat )\tA cat sleeps.\tIt sleeps.\tneutral\t{}",
        "entailment",
    ),
    "QNLI": (
        "index\tquestion\tsentence\tlabel",
        "0\tWho sleeps?\tA cat sleeps.\t{}",
        "not_entailment",
    ),
    "RTE": (
        "index\tsentence1\tsentence2\tlabel",
        "0\tA cat sleeps.\tIt sleeps.\t{}",
        "not_entailment",
    ),
    "WNLI": ("index\tsentence1\tsentence2\tlabel", "0\tA cat sleeps.\tIt.\t{}", "1"),
}
EXAMPLES = {
    "CoLA": "A cat sleeps.",
    "SST-2": "A cat sleeps.",
    "MRPC": ('"A cat sleeps.', 'It "sleeps".'),
    "QQP": ("Who sleeps?", "Who is asleep?"),
    "QNLI": ("Who sleeps?", "A cat sleeps."),
    "WNLI": ("A cat sleeps.", "It."),
}
TEST_HEADERS = {
    "CoLA": "index\tsentence",
    "SST-2": "index\tsentence",
    "MRPC": "index\t#1 ID\t#2 ID\t#1 String\t#2 String",
    "QQP": "id\tquestion1\tquestion2",
    "QNLI": "index\tquestion\tsentence",
}


def write(root, name, files=("train", "dev"), broken=()):
    header, row, label = FILES[name]
    other = (
        "0.5" if name == "STS-B" else next(x for x in TASKS[name].labels if x != label)
    )
    lines = [header] if header else []
    lines += [row.format(label), row.format(other), *broken]
    (root / name).mkdir(exist_ok=True)
    for file in files:
        (root / name / f"{file}.tsv").write_text("\n".join(lines) + "\n")


def write_test(root, name, file="test"):
    header = TEST_HEADERS.get(name, "index\tsentence1\tsentence2")
    width = header.count("\t")
    lines = [f"{i}" + f"\ttext {i}" * width for i in (0, 7)]
    (root / name).mkdir(exist_ok=True)
    (root / name / f"{file}.tsv").write_text("\n".join([header, *lines]))


@pytest.mark.parametrize("name", TASKS)
def test_files(tmp_path, name):
    write(tmp_path, name, broken=["too few fields"])
    write_test(tmp_path, name)
    task = GlueTask(name, tmp_path)
    assert list(task.splits) == ["train", "dev", "test"]
    train = task.splits["train"]
    expected = EXAMPLES.get(name, ("A cat sleeps.", "It sleeps."))
    assert train.examples == [expected, expected]
    label = FILES[name][2]
    assert train.labels[0] == (3.8 if name == "STS-B" else label)
    [(count, first)] = train.skipped.values()
    assert (count, first) == (1, "line 3" if name == "CoLA" else "line 4")
    texts = ("text 7",) * len(TASKS[name].texts)
    assert task.splits["test"].examples[1] == (texts if len(texts) > 1 else texts[0])
    assert task.splits["test"].labels is None
    assert task.splits["test"].ids == ["0", "7"]
    right = task.metrics(train.labels, train)
    assert list(right) == list(TASKS[name].metrics)
    assert list(right.values()) == pytest.approx([100] * len(right))


def test_main_metrics():
    mains = {name: table.metrics[0] for name, table in TASKS.items()}
    assert mains.pop("CoLA") == "matthews"
    assert mains.pop("STS-B") == "spearman"
    assert set(mains.values()) == {"accuracy"}
    assert [n for n, table in TASKS.items() if "f1" in table.metrics] == ["MRPC", "QQP"]


def test_f1_is_that_of_the_label_1(tmp_path):
    write(tmp_path, "MRPC")
    task = GlueTask("MRPC", tmp_path)
    split = task.splits["dev"]
    assert split.labels == ["1", "0"]
    assert task.metrics(["0", "0"], split) == {"accuracy": 50, "f1": 0}
    assert task.metrics(["1", "1"], split)["f1"] == pytest.approx(200 / 3)


def test_mnli_has_two_development_sets_three_test_files(tmp_path):
    write(tmp_path, "MNLI", ("train", "dev_matched", "dev_mismatched"))
    write_test(tmp_path, "MNLI", "test_matched")
    write_test(tmp_path, "MNLI", "test_mismatched")
    (tmp_path / "diagnostic").mkdir()
    (tmp_path / "MNLI" / "test_matched.tsv").replace(
        tmp_path / "diagnostic" / "diagnostic.tsv"
    )
    task = GlueTask("MNLI", tmp_path)
    dev = ["dev_matched", "dev_mismatched"]
    assert list(task.splits) == ["train", *dev, "test_mismatched", "test_diagnostic"]
    labels = ["neutral", "contradiction"]
    written = {
        split: task.write_predictions(labels, split, tmp_path / "out")
        for split in list(task.splits)[3:]
    }
    assert [path.name for path in written.values()] == ["MNLI-mm.tsv", "AX.tsv"]
    expected = "index\tprediction\n0\tneutral\n7\tcontradiction\n"
    assert written["test_diagnostic"].read_text() == expected
    with pytest.raises(ValueError, match="no split 'test_matched' in .*were not there"):
        task.write_predictions(labels, "test_matched", tmp_path / "out")


def test_scores_are_submitted_with_three_decimals(tmp_path):
    write(tmp_path, "STS-B")
    write_test(tmp_path, "STS-B")
    task = GlueTask("STS-B", tmp_path)
    expected = {"labels": None, "score_range": [0, 5], "pairs": True}
    assert task.model_arguments == expected
    path = task.write_predictions([3.14159, 5.0], "test", tmp_path)
    assert path.name == "STS-B.tsv"
    assert path.read_text() == "index\tprediction\n0\t3.142\n7\t5.000\n"


def test_clear_errors(tmp_path):
    with pytest.raises(ValueError, match=r"no task 'SST'.*'SST-2'"):
        GlueTask("SST", tmp_path)
    with pytest.raises(ValueError, match="AX is a test split of MNLI"):
        GlueTask("AX", tmp_path)
    with pytest.raises(FileNotFoundError, match="RTE is not a folder"):
        GlueTask("RTE", tmp_path)
    write(tmp_path, "RTE", ["train"])
    with pytest.raises(FileNotFoundError, match="dev.tsv is not a file"):
        GlueTask("RTE", tmp_path)
    write(tmp_path, "MNLI", ["train"])
    with pytest.raises(FileNotFoundError, match="dev_matched.tsv is not a file"):
        GlueTask("MNLI", tmp_path)


# === TensorFlow Datasets ===


class FakeTfds(types.ModuleType):
    """Holds splits by configuration; TFDS's features and integer labels."""

    def __init__(self, data):
        super().__init__("tensorflow_datasets")
        self.data, self.prepared = data, []

    def builder(self, name):
        def as_dataset(split, shuffle_files):
            assert not shuffle_files and name in self.prepared
            return self.data[name][split]

        return types.SimpleNamespace(
            download_and_prepare=lambda: self.prepared.append(name),
            as_dataset=as_dataset,
        )

    def as_numpy(self, rows):
        return iter(rows)


def row(index, label, **texts):
    label = np.float32(label) if isinstance(label, float) else np.int64(label)
    texts = {name: text.encode() for name, text in texts.items()}
    return {"idx": np.int32(index), "label": label, **texts}


def with_tfds(monkeypatch, data):
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", FakeTfds(data))


def test_tfds_mnli(monkeypatch):
    def split(*labels):  # in another order than of their numbers
        rows = [
            row(i, label, premise=f"premise {i}", hypothesis="é")
            for i, label in enumerate(labels)
        ]
        return rows[::-1]

    names = ("validation_matched", "validation_mismatched")
    data = {"train": split(0, 1, 2), names[0]: split(2), names[1]: split(1)}
    data |= {"test_matched": split(-1, -1), "test_mismatched": split(-1)}
    with_tfds(monkeypatch, {"glue/mnli": data, "glue/ax": {"test": split(-1)}})
    splits = GlueTask("MNLI", "tfds:glue").splits
    train = splits["train"]
    assert train.labels == ["entailment", "neutral", "contradiction"]
    assert train.examples[1] == ("premise 1", "é")
    assert splits["dev_matched"].labels == ["contradiction"]
    assert splits["dev_mismatched"].labels == ["neutral"]
    assert splits["test_matched"].ids == ["0", "1"]
    assert splits["test_diagnostic"].labels is None


def test_tfds_numbers_scores_and_bad_rows(monkeypatch):
    pair = {"sentence1": "a", "sentence2": "b"}
    bad = row(3, 1, sentence1="", sentence2="b")
    mrpc = {
        "train": [row(0, 1, **pair), row(1, 0, **pair), bad, row(4, -1, **pair)],
        "validation": [row(0, 0, **pair)],
        "test": [row(0, -1, **pair)],
    }
    stsb = {
        "train": [row(0, 2.5, **pair), row(1, 5.0, **pair)],
        "validation": [row(0, 0.0, **pair)],
        "test": [row(0, -1.0, **pair)],
    }
    with_tfds(monkeypatch, {"glue/mrpc": mrpc, "glue/stsb": stsb})
    train = GlueTask("MRPC", "tfds:glue").splits["train"]
    assert train.labels == ["1", "0"]
    assert train.skipped == {
        "empty text": (1, "example 3"),
        "a label other than 0, 1": (1, "example 4"),
    }
    splits = GlueTask("STS-B", "tfds:glue").splits
    assert splits["train"].labels == [2.5, 5.0]
    assert splits["dev"].labels == [0.0]
    assert splits["test"].labels is None


def test_tfds_must_be_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    with pytest.raises(ImportError, match=r"pip install -e '\.\[tfds\]'"):
        GlueTask("RTE", "tfds:glue")


# === The papers' numbers ===


def test_published_averages_are_those_of_the_tasks():
    whole = [row for row in published_scores() if row.scores]
    assert len(whole) == 7 + 16
    for row in whole:
        eight = [row.scores[task] for task in TASKS if task != "WNLI"]
        # COCO-LM's averages of other papers' scores are theirs.
        tolerance = 0.2 if row.source.startswith("COCO") else 0.06
        assert row.average == pytest.approx(sum(eight) / 8, abs=tolerance), row


def test_published_scores_of_the_text_of_the_papers():
    averages = {
        (r.source[-9:], r.size, r.system): r.average for r in published_scores()
    }
    # The thesis, 5.4.1: ELECTRA-Small is five points above BERT-Small, above GPT.
    thesis = {key[1:]: v for key, v in averages.items() if key[0] == "table 5.3"}
    assert round(thesis["small", "ELECTRA"] - thesis["small", "BERT"]) == 5
    assert thesis["small", "ELECTRA"] > thesis["117M", "GPT"]
    # TEAMS: better than all others of its size.
    teams = [row for row in published_scores() if row.source == "TEAMS, table 1"]
    for size in {row.size for row in teams}:
        best = max((r for r in teams if r.size == size), key=lambda r: r.average)
        assert best.system == "TEAMS"


def test_published_scores_of_a_task(tmp_path):
    write(tmp_path, "RTE")
    task = GlueTask("RTE", tmp_path)
    assert task.published("small") == {}
    large = task.published("large")
    assert large["Clark's thesis, table 5.4: ELECTRA-1.75M"] == 88.0
    assert len(large) == 4
    base = task.published("base")
    assert base["COCO-LM, table 1: COCO-LM"] == 84.8
    assert len(base) == 4
    write(tmp_path, "WNLI")
    assert GlueTask("WNLI", tmp_path).published("base") == {}
