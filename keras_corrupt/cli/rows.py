"""Rows that a model is to answer, one after another, and its answers as rows."""

import csv
import json
import os
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from keras_corrupt.files.streams import input_lines
from keras_corrupt.files.tables import BadRow, as_text, json_records, records
from keras_corrupt.files.text import text_lines
from keras_corrupt.tasks.conll import read_conll
from keras_corrupt.tasks.task import describe_skipped

#: How a file has its rows: as lines of text, as rows of a table, or as sentences with a
#: word in each line.
FORMATS = ("lines", "csv", "tsv", "jsonl", "conll")


class Row(NamedTuple):
    """A row.

    Attributes:
        where: File and line, for messages.
        example: The model's raw example.
        kept: Column -> value, of the columns that are written again.
    """

    where: str
    example: object
    kept: dict


def format_of(path):
    """Returns the format of a file by its name; lines where the name has no ending.

    The standard input, `None`, has no name.

    Raises:
        ValueError: The name does not tell.

    >>> format_of("reviews.csv.gz"), format_of("dev.conllu"), format_of("a.txt")
    ('csv', 'conll', 'lines')
    """
    name = re.sub(r"\.(gz|xz|zst)$", "", os.path.basename(path or "").lower())
    ending = os.path.splitext(name)[1].removeprefix(".")
    kind = {"conllu": "conll", "txt": "lines", "text": "lines", "": "lines"}
    if (form := kind.get(ending, ending)) not in FORMATS:
        raise ValueError(
            f"The name of {path} does not tell its format: give --format, one of "
            f"{', '.join(FORMATS)}."
        )
    return form


def read(path, form, answering, columns=(), keep=()) -> Iterator[Row]:
    """Reads rows, in bounded memory.

    Args:
        path: A file; `None` for the standard input.
        form: One of `FORMATS`.
        answering: The model's `Answering`.
        columns: The file's columns that have the model's inputs, in their order; their
            own names if empty. Numbers from 0 say that the file has no header.
        keep: Columns to keep.

    Yields:
        A `Row` for each.

    Raises:
        ValueError: The columns are more or fewer than the inputs, or a row is bad;
            names the file and the row.
    """
    if form == "conll":
        yield from _sentences(path, answering, columns, keep)
        return
    names = columns or answering.columns
    needed = len(columns) or answering.needed
    inputs = ", ".join(answering.columns)
    if not answering.needed <= len(names) <= len(answering.columns):
        raise ValueError(
            f"--columns {' '.join(columns)}: the model reads {inputs}. Name a column "
            "for each of them, in this order."
        )
    if form == "lines" and columns:
        raise ValueError(
            f"--columns {' '.join(columns)}: a line of text has no columns. Leave it "
            "out, or give --format csv, tsv or jsonl."
        )
    if form == "lines" and needed > 1:
        raise ValueError(
            f"The model reads {inputs}, and a line is one text: give a file with "
            "columns, and --format csv, tsv or jsonl if its name does not tell."
        )
    source = path or "standard input"
    for number, cells in _cells(path, form, names, keep):
        where = f"{source}:{number}"
        if isinstance(cells, BadRow):
            raise ValueError(f"{where}: {cells}. Mend the row, or take it out.")
        if missing := [n for n in (*names[:needed], *keep) if n not in cells]:
            raise ValueError(
                f"{where}: there is no column {missing[0]!r}; the columns are "
                f"{', '.join(map(repr, cells))}. The model reads {inputs}: name their "
                "columns by --columns, in this order."
            )
        values = [as_text(cells[name]) for name in names[:needed]]
        further = (cells.get(name) for name in names[needed:])
        values += [as_text(cell) for cell in further if cell is not None]
        try:
            example = answering.example(values)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from error
        yield Row(where, example, {name: cells[name] for name in keep})


def _sentences(path, answering, columns, keep):
    """Yields a `Row` for each sentence of a file of CoNLL's layout, read whole."""
    if path is None or keep or not answering.in_words:
        raise ValueError(
            "--format conll is for a file, for models that read words, and has no "
            "columns to --keep."
        )
    if columns and not columns[0].isdecimal():
        raise ValueError(
            f"--columns {columns[0]}: the words' column of --format conll is a number "
            "from 0."
        )
    column = int(columns[0]) if columns else None
    split = read_conll(path, column, scheme="plain", tags="unread")
    if split.skipped:
        raise ValueError(f"{path}: {describe_skipped(split.skipped)}. Mend them.")
    for number, words in enumerate(split.examples, 1):
        yield Row(f"{path}, sentence {number}", words, {})


def _cells(path, form, names, keep):
    """Yields the number and the cells of each row, a dict, or why it is bad."""
    if path is None:
        lines = input_lines()
    else:
        lines = text_lines(path)
    if form == "lines":
        for number, line in lines:
            yield number, {names[0]: line}
    elif form == "jsonl":
        yield from json_records(lines)
    else:
        header = None
        for number, cells in records(lines, form):
            if isinstance(cells, BadRow):
                yield number, cells
                continue
            if header is None:
                if not all(name.isdecimal() for name in names):
                    header = cells
                    if twice := [n for n in (*names, *keep) if header.count(n) > 1]:
                        raise ValueError(
                            f"{path or 'standard input'}:{number}: two columns are "
                            f"named {twice[0]!r}: rename one."
                        )
                    continue
                header = [str(place) for place in range(len(cells))]
            yield number, dict(zip(header, cells, strict=True))


def writer(file, form) -> Callable[[dict], None]:
    """Returns a function that writes a row.

    Args:
        file: The text file.
        form: `"jsonl"`; or `"csv"`, with a header of the first row's columns. There, a
            dict in a row has a column for each of its entries, and a list is in JSON.
    """
    if form == "jsonl":
        return lambda row: file.write(json.dumps(row, ensure_ascii=False) + "\n")
    table = csv.writer(file, lineterminator="\n")
    header = []

    def write(row):
        cells = dict(_flat(row))
        if not header:
            header.extend(cells)
            table.writerow(header)
        if other := [name for name in cells if name not in header]:
            raise ValueError(
                f"An answer has a column {other[0]!r}, which the first one lacks. "
                "Write JSON lines: --to jsonl."
            )
        table.writerow([cells.get(name, "") for name in header])

    return write


def _flat(row):
    for name, value in row.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{key}", entry) for key, entry in value.items())
        elif isinstance(value, list):
            yield name, json.dumps(value, ensure_ascii=False)
        else:
            yield name, value
