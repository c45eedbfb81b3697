"""GLUE: nine tasks and a diagnostic set (Clark's thesis, 2.6.2; gluebenchmark.com).

Read from a directory in GLUE's layout, one folder a task, or from TensorFlow Datasets.
Labels are those that GLUE's files of predictions have.
"""

from pathlib import Path
from typing import NamedTuple

from keras_corrupt.tasks.glue.published_scores import COMPARED, published_scores
from keras_corrupt.tasks.tables import (
    Columns,
    make_split,
    one_of,
    read_table,
    score_in,
)
from keras_corrupt.tasks.task import write_table
from keras_corrupt.tasks.text_task import TextTask
from keras_corrupt.tasks.tfds import read_examples

#: Where TensorFlow Datasets has GLUE.
TFDS = "tfds:glue"


class GlueTable(NamedTuple):
    """A task's columns and labels.

    Attributes:
        texts: The column or the two columns of texts.
        label: The column of the label or score.
        labels: The labels, in the order of TFDS's numbers; `None` for scores.
        metrics: The metrics of GLUE, the thesis's metric (5.2) first.
        tfds_texts: The texts in TFDS, where they have other names.
        id: The column of the number that the leaderboard knows a test example by.
    """

    texts: tuple
    label: str = "label"
    labels: tuple | None = ("0", "1")
    metrics: tuple = ("accuracy",)
    tfds_texts: tuple | None = None
    id: str = "index"


SENTENCES = ("sentence1", "sentence2")
NLI = ("entailment", "not_entailment")

TASKS = {
    "CoLA": GlueTable(("sentence",), metrics=("matthews", "accuracy")),
    "SST-2": GlueTable(("sentence",)),
    "MRPC": GlueTable(
        ("#1 String", "#2 String"), "Quality", ("0", "1"), ("accuracy", "f1"), SENTENCES
    ),
    "STS-B": GlueTable(SENTENCES, "score", None, ("spearman", "pearson")),
    "QQP": GlueTable(
        ("question1", "question2"),
        "is_duplicate",
        metrics=("accuracy", "f1"),
        id="id",
    ),
    "MNLI": GlueTable(
        SENTENCES,
        "gold_label",
        ("entailment", "neutral", "contradiction"),
        tfds_texts=("premise", "hypothesis"),
    ),
    "QNLI": GlueTable(("question", "sentence"), labels=NLI),
    "RTE": GlueTable(SENTENCES, labels=NLI),
    "WNLI": GlueTable(SENTENCES),
}

#: STS-B's scores, from unrelated to equivalent.
SCORE_RANGE = (0.0, 5.0)

#: Split of MNLI -> the leaderboard's file. Models of MNLI label the diagnostic set.
MNLI_FILES = {
    "test_matched": "MNLI-m.tsv",
    "test_mismatched": "MNLI-mm.tsv",
    "test_diagnostic": "AX.tsv",
}


class GlueTask(TextTask):
    """A task of GLUE.

    MNLI has the splits `dev_matched` and `dev_mismatched`, or `dev` where there is but
    a `dev.tsv`; and `test_matched`, `test_mismatched` and `test_diagnostic`.

    Args:
        name: One of `TASKS`.
        source: A directory in GLUE's layout (`CoLA/train.tsv`, `CoLA/dev.tsv`), or
            `"tfds:glue"`. Test files may be lacking.

    Raises:
        FileNotFoundError: The training or development file is not there.
        ValueError: No such task, or a file is not as GLUE's.
    """

    def __init__(self, name, source):
        if name not in TASKS:
            hint = " AX is a test split of MNLI." if name == "AX" else ""
            raise ValueError(f"GLUE has no task {name!r}, but {[*TASKS]}.{hint}")
        table = TASKS[name]
        self.source = source
        splits = _tfds_splits(name) if source == TFDS else _file_splits(name, source)
        score_range = SCORE_RANGE if table.labels is None else None
        super().__init__(name, splits, table.labels, score_range, table.metrics)

    def published(self, size):
        """Returns what papers report of this project's systems at a size.

        Args:
            size: `"small"`, `"base"` or `"large"`.

        Returns:
            Table and system -> the main metric, in percent; nothing where papers have
            averages alone, as for small encoders.
        """
        return {
            f"{row.source}: {row.system}": row.scores[self.name]
            for row in published_scores()
            if row.size == size
            and row.system.startswith(COMPARED)
            and self.name in row.scores
        }

    def write_predictions(self, predictions, name, directory):
        """Writes the file that GLUE's leaderboard reads, for test splits.

        Raises:
            ValueError: There is no such split.
        """
        if name not in self.splits:
            raise ValueError(
                f"{self.name} has no split {name!r} in {self.source}, only "
                f"{[*self.splits]}: test files were not there when it was read."
            )
        file = f"{self.name}.tsv" if name == "test" else f"{self.name}-{name}.tsv"
        path = Path(directory) / MNLI_FILES.get(name, file)
        if TASKS[self.name].labels is None:
            predictions = [f"{score:.3f}" for score in predictions]
        write_table(path, ("index", "prediction"), self.splits[name].ids, predictions)
        return path


def _file_splits(name, root):
    folder = Path(root) / name
    if not folder.is_dir():
        raise FileNotFoundError(
            f"{folder} is not a folder: {str(root)!r} must hold GLUE's folders, or be "
            f"{TFDS!r}."
        )
    table = TASKS[name]
    labelled = Columns(*table.texts, label=table.label)
    if name == "CoLA":  # the only files without a header
        labelled = Columns(3, label=1)
    dev = ["dev"]
    if name == "MNLI" and not (folder / "dev.tsv").is_file():
        dev = ["dev_matched", "dev_mismatched"]
    splits = {
        split: read_table(folder / f"{split}.tsv", labelled, _label_reader(table))
        for split in ("train", *dev)
    }
    unlabelled = Columns(*table.texts, id=table.id)
    for split in ("test", "test_matched", "test_mismatched"):
        if (folder / f"{split}.tsv").is_file():
            splits[split] = read_table(folder / f"{split}.tsv", unlabelled)
    diagnostic = Path(root) / "diagnostic" / "diagnostic.tsv"
    if name == "MNLI" and diagnostic.is_file():
        splits["test_diagnostic"] = read_table(diagnostic, unlabelled)
    return splits


def _tfds_splits(name):
    def splits_of(config, names):
        for split, tfds_name in names.items():
            data = read_examples(f"glue/{config}", tfds_name)
            rows = [_tfds_row(row, table) for row in data]
            rows.sort(key=lambda row: int(row[1]["idx"]))
            label = None if split.startswith("test") else "label"
            columns = Columns(*(table.tfds_texts or table.texts), label=label, id="idx")
            source = f"{TFDS}/{config}, {tfds_name},"
            splits[split] = make_split(source, rows, columns, _label_reader(table))

    table, splits = TASKS[name], {}
    if name != "MNLI":
        config = name.lower().replace("-", "")
        splits_of(config, {"train": "train", "dev": "validation", "test": "test"})
        return splits
    names = {"train": "train"}
    for kind in ("matched", "mismatched"):
        names[f"dev_{kind}"] = f"validation_{kind}"
        names[f"test_{kind}"] = f"test_{kind}"
    splits_of("mnli", names)
    splits_of("ax", {"test_diagnostic": "test"})
    return splits


def _tfds_row(row, table):
    """Returns a row as a file of GLUE would have it."""
    cells = {}
    for name, value in row.items():
        if isinstance(value, bytes):
            value = value.decode("utf-8", "surrogateescape")
        elif name == "label" and table.labels and value in range(len(table.labels)):
            value = table.labels[value]
        cells[name] = str(value)
    return f"example {cells['idx']}", cells


def _label_reader(table):
    return score_in(SCORE_RANGE) if table.labels is None else one_of(table.labels)
