"""How tables in CSV, TSV and JSON lines are cut into rows: one way for all readers.

CSV has quotes, in which a cell may hold commas and ends of lines; TSV has none, as in
GLUE.
"""

import csv
import json
from collections.abc import Iterable, Iterator

# Characters of a CSV cell; the `csv` module's own limit is 131,072.
_MAX_CELL = 1 << 30


class BadRow(ValueError):
    """Says why a row is left out."""


def as_text(value):
    """Returns a value of a JSON line as the text of a cell; lists and dicts stay.

    >>> as_text(None), as_text(2.5), as_text(["a", "b"])
    ('', '2.5', ['a', 'b'])
    """
    if isinstance(value, (str, list, dict)):
        return value
    return "" if value is None else json.dumps(value)


def records(
    lines: Iterable[tuple[int, str]], kind: str
) -> Iterator[tuple[int, list[str] | BadRow]]:
    r"""Cuts lines into records, all as wide as the first one.

    Args:
        lines: Numbers and lines, as `text_lines` gives them.
        kind: `"csv"` or `"tsv"`.

    Yields:
        The number of a record's first line, and its cells, or why it is bad.

    Example:
    >>> list(records([(1, "id,text"), (2, '7,"a, b'), (3, 'c"')], "csv"))
    [(1, ['id', 'text']), (2, ['7', 'a, b\nc'])]
    """
    width = None
    for number, cells in (_csv if kind == "csv" else _tsv)(lines):
        if not isinstance(cells, BadRow):
            width = width or len(cells)
            if len(cells) != width:
                cells = BadRow("another number of fields than the first line")
        yield number, cells


def json_records(
    lines: Iterable[tuple[int, str]],
) -> Iterator[tuple[int, dict | BadRow]]:
    """Reads lines that are JSON objects, and passes over empty ones.

    Args:
        lines: Numbers and lines, as `text_lines` gives them.

    Yields:
        A line's number, and the object, or why it is bad.
    """
    for number, line in lines:
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            row = BadRow("something else than a JSON object")
        yield number, row


def _tsv(lines):
    for number, line in lines:
        if line:
            yield number, line.split("\t")


def _csv(lines):
    csv.field_size_limit(_MAX_CELL)
    # A cell in quotes may hold ends of lines.
    reader = csv.reader((f"{line}\n" for _, line in lines), strict=True)
    while True:
        start = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            # Each line counts: a quote that nobody closes swallows many.
            for number in range(start, reader.line_num + 1):
                yield number, BadRow(f"wrong CSV: {error}")
            continue
        if cells:
            yield start, cells
