"""Texts or pairs of texts with a label or a score, in TSV, CSV or JSONL files."""

import dataclasses
import json
import math
import re
import warnings
from collections import Counter
from pathlib import Path

from keras_corrupt.files.tables import BadRow, as_text, json_records, records
from keras_corrupt.files.text import text_lines
from keras_corrupt.tasks.task import Split, describe_skipped, hold_out
from keras_corrupt.tasks.text_task import TextTask


@dataclasses.dataclass(frozen=True)
class Columns:
    """Where in a table to find what a task reads.

    All are names, of the header line of a TSV or CSV file or of the fields of a JSONL
    file; or all are numbers from 0, for a TSV or CSV file without a header.

    Attributes:
        text: The column of the text.
        second_text: The column of the second text, for pairs.
        label: The column of the label or score; `None` for texts to be labelled.
        id: The column that identifies the row; `None` to count rows from 0.
        third_text: The column of a third text, such as a hard negative.
    """

    text: str | int
    second_text: str | int | None = None
    label: str | int | None = None
    id: str | int | None = None
    third_text: str | int | None = None

    def __post_init__(self):
        if len({type(column) for column in self.all}) > 1:
            raise ValueError(
                "Columns must all be names, or all be numbers, which say that the file "
                f"has no header; got {', '.join(map(repr, self.all))}."
            )
        if len({*self.texts, self.label}) < len(self.texts) + 1:
            raise ValueError(
                "The label and each text must be in a column of its own; got "
                f"{', '.join(map(repr, self.all))}."
            )

    @property
    def texts(self):
        columns = self.text, self.second_text, self.third_text
        return [c for c in columns if c is not None]

    @property
    def all(self):
        return [*self.texts, *(c for c in (self.label, self.id) if c is not None)]


def one_of(labels=None):
    """Makes what reads a label that is one of `labels`, or any where they are `None`.

    >>> one_of(["yes", "no"])("yes")
    'yes'
    """

    def read_label(cell):
        if not cell:
            raise BadRow("empty label")
        if labels is not None and cell not in labels:
            raise BadRow(f"a label other than {', '.join(labels)}")
        return cell

    return read_label


def score_in(score_range=None):
    """Makes what reads a number, from the range's least to its greatest if it is given.

    >>> score_in((0, 5))("3.8")
    3.8
    """

    def read_label(cell):
        try:
            score = float(cell)
        except ValueError:
            score = math.nan
        if not math.isfinite(score):
            raise BadRow("a score that is not a number")
        if score_range is not None and not score_range[0] <= score <= score_range[1]:
            raise BadRow(f"a score not from {score_range[0]} to {score_range[1]}")
        return score

    return read_label


def read_table(path, columns, read_label=None, lists=False, to_learn=False):
    """Reads a table.

    A TSV file has no quoting, as GLUE's; CSV has. Rows that cannot be used are left
    out, and counted by reason in `Split.skipped`.

    Args:
        path: A `.tsv`, `.csv` or `.jsonl` file, which may be compressed (`.gz`, `.xz`,
            `.zst`).
        columns: A `Columns`. Others in the file are not looked at.
        read_label: What makes a label of a cell: `one_of(...)` or `score_in(...)`;
            `None` for any label.
        lists: Whether the label's field of a JSONL file may be a list, which
            `read_label` gets in JSON.
        to_learn: Whether a row with an empty text is left out even without a label,
            since nothing has to be predicted for it.

    Returns:
        A `Split` whose examples are strings, or tuples of strings.

    Raises:
        FileNotFoundError: No such file.
        ValueError: The file has not these columns, no row that can be used, or is of
            another kind.
    """
    path = Path(path)
    names, rows = read_rows(path, header=isinstance(columns.text, str))
    missing = [column for column in columns.all if column not in names]
    if missing and names:
        raise ValueError(f"{path} has no column {missing[0]!r}; it has {names}.")
    if twice := [column for column in columns.all if names.count(column) > 1]:
        raise ValueError(f"{path} has two columns {twice[0]!r}: rename one.")
    return make_split(path, rows, columns, read_label, lists, to_learn)


def make_split(source, rows, columns, read_label=None, lists=False, to_learn=False):
    """Makes a `Split` of rows.

    Args:
        source: Where the rows come from, for messages.
        rows: A list of `(where, row)`: what to call the row's place, and a dict from
            columns to values, or a `BadRow`.
        columns: A `Columns`.
        read_label: As for `read_table`.
        lists: As for `read_table`.
        to_learn: As for `read_table`.

    Returns:
        As `read_table`.

    Raises:
        ValueError: No row can be used.
    """
    read_label = read_label or one_of()
    split = Split([], [] if columns.label is not None else None, [])
    for i, (where, row) in enumerate(rows):
        try:
            if isinstance(row, BadRow):
                raise row
            cells = {
                column: _cell(row, column, lists and column == columns.label)
                for column in columns.all
            }
            example = tuple(cells[column] for column in columns.texts)
            if columns.label is not None or to_learn:
                # A row to be labelled needs a prediction even if a text is empty.
                if not all(text.strip() for text in example):
                    raise BadRow("empty text")
            if columns.label is not None:
                split.labels.append(read_label(cells[columns.label].strip()))
            split.examples.append(example if len(example) > 1 else example[0])
            split.ids.append(str(i) if columns.id is None else cells[columns.id])
        except BadRow as problem:
            count, first = split.skipped.get(str(problem), (0, where))
            split.skipped[str(problem)] = (count + 1, first)
    if not split.examples:
        raise ValueError(
            f"{source} has no row that can be used: "
            + (describe_skipped(split.skipped) or "it is empty.")
        )
    return split


def read_rows(path, header=True):
    """Reads the rows of a file as they are.

    Args:
        path: As for `read_table`.
        header: Whether the first line of a TSV or CSV file has the columns' names.

    Returns:
        The columns' names, or numbers, and a list of `(where, row)`, as for
        `make_split`.
    """
    path = Path(path)
    kind = re.search(r"\.(tsv|csv|jsonl)(\.(gz|xz|zst))?$", path.name.lower())
    if not kind:
        raise ValueError(
            f"{path} must be a .tsv, .csv or .jsonl file, or one of these with .gz, "
            ".xz or .zst."
        )
    kind = kind[1]
    if not header and kind == "jsonl":
        raise ValueError(f"The columns of {path}, a JSONL file, must be names.")
    # Bytes that are not UTF-8 become lone surrogates, by which `_cell` finds them.
    lines = text_lines(path, errors="surrogateescape")
    if kind == "jsonl":
        return _json_rows(lines)
    names, rows = [], []
    for line, fields in records(lines, kind):
        if not isinstance(fields, BadRow):
            if not names:
                names = fields if header else list(range(len(fields)))
                if header:
                    continue
            fields = dict(zip(names, fields, strict=True))
        rows.append((f"line {line}", fields))
    return names, rows


def _json_rows(lines):
    names, rows = {}, []
    for number, row in json_records(lines):
        if isinstance(row, dict):
            names.update(dict.fromkeys(row))
        rows.append((f"line {number}", row))
    return list(names), rows


def _cell(row, column, may_be_list=False):
    value = as_text(row.get(column))
    if isinstance(value, dict if may_be_list else list | dict):
        raise BadRow("a list or an object in place of a text, label or id")
    if isinstance(value, list):
        value = json.dumps(value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadRow("bytes that are not UTF-8") from None
    return value


class TableTask(TextTask):
    """A task in files of one's own.

    Rows of `train` whose label or score is not one of the given ones are left out. No
    row to evaluate on is left out for that: a label that the model does not have
    counts as wrong (`unseen`).

    Args:
        train: Path of the training examples.
        columns: A `Columns`, the same for all files.
        dev: Path of the examples to evaluate on; `None` to hold some of `train` out.
        test: Path of examples to be labelled; they may have labels too.
        labels: The classes' names; `None` for those in `train`, in sorted order.
        regression: Whether labels are scores.
        score_range: The least and the greatest score; `None` for those in `train`.
        dev_fraction: The share of `train` to hold out where there is no `dev`.
        name: The task's name; `None` for the name of the file `train`, or, where that
            is no more than "train", of its folder.
        balance: Whether all classes weigh the same in training, however few examples
            they have.

    Raises:
        FileNotFoundError: A file is not there.
        ValueError: A file does not fit: see `read_table`; or the training examples
            have one label only.
    """

    def __init__(
        self,
        train,
        columns,
        dev=None,
        test=None,
        labels=None,
        regression=False,
        score_range=None,
        dev_fraction=0.1,
        name=None,
        balance=False,
    ):
        if columns.label is None:
            raise ValueError("`columns` must say which column has the label.")
        if balance and regression:
            raise ValueError("`balance` is for classes, `regression` is for scores.")
        if labels is not None and regression:
            raise ValueError(
                "`labels` are for classes, `regression` is for scores: give one."
            )
        if score_range is not None:
            if not regression:
                raise ValueError(
                    "`score_range` is for scores: give `regression=True` too."
                )
            if not score_range[0] < score_range[1]:
                raise ValueError(
                    "`score_range` must be the least and the greatest score; got "
                    f"{score_range}."
                )
        usable = score_in(score_range) if regression else one_of(labels)
        training = read_table(train, columns, usable)
        if regression and score_range is None:
            score_range = (min(training.labels), max(training.labels))
        if not regression and labels is None:
            labels = sorted(set(training.labels))
        read_label = score_in() if regression else one_of()
        if dev is None:
            training, held_out = hold_out(training, dev_fraction)
            splits = {"train": training, "dev": held_out}
        else:
            splits = {"train": training, "dev": read_table(dev, columns, read_label)}
        if test is not None:
            splits["test"] = read_test(test, columns, read_label)
        super().__init__(
            name or task_name(train),
            splits,
            labels,
            score_range,
            ("spearman", "pearson") if regression else ("accuracy", "macro_f1"),
        )
        if balance:
            self.model_arguments["label_weights"] = balanced(training.labels, labels)


def balanced(train, labels):
    """Returns weights by which all labels count the same: 1 on average over examples.

    >>> balanced(["a", "a", "a", "b"], ["a", "b"])
    [0.6666666666666666, 2.0]
    """
    counts = Counter(train)
    return [len(train) / (len(labels) * max(counts[label], 1)) for label in labels]


def read_test(path, columns, read_label, lists=False):
    """Reads as `read_table` does; the file may lack the column of the label.

    Rows without a label are to be labelled: where a text has an empty cell in that
    column, no label of the file is read, and a warning says so if others have one. An
    empty list of labels (`lists`) is one.
    """
    names, rows = read_rows(path, header=isinstance(columns.text, str))
    rows = [row for _, row in rows if isinstance(row, dict)]
    cells = [
        _is_filled(row, columns.label) or lists
        for row in rows
        if all(_is_filled(row, column) for column in columns.texts)
    ]
    if columns.label not in names or not all(cells):
        if columns.label in names and any(cells):
            warnings.warn(
                f"{path}: {cells.count(False)} of {len(cells)} rows have no label, so "
                "that the file gets predictions and no score.",
                stacklevel=2,
            )
        columns = dataclasses.replace(columns, label=None)
    return read_table(path, columns, read_label, lists)


def _is_filled(row, column):
    value = row.get(column)
    return value is not None and bool(str(value).strip())


def task_name(path):
    """Returns what to call the task of a file.

    >>> task_name("data/reviews.csv.gz"), task_name("ag_news/train.tsv")
    ('reviews', 'ag_news')
    """
    path = Path(path).resolve()
    stem = path.name.split(".")[0]
    return path.parent.name if stem == "train" else stem
