"""The sources of a corpus, among them files of text, of JSON lines and of tables.

A source streams `(document, line)` pairs: the number of the document within the source
and one line (a sentence or a paragraph) of it. A reader of `.txt` files holds no more
than one line in memory, so a document may be larger than memory. Other readers hold
some rows.
"""

import dataclasses
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator

from keras_corrupt.data.corpus_files import CSV, CorpusError, ends_in
from keras_corrupt.files.tables import BadRow, records
from keras_corrupt.files.text import DamagedFileError, byte_lines, split_lines
from keras_corrupt.files.urls import is_url, version_at

DOCUMENTS = ("blank_lines", "lines")
"""How a `.txt` file can be divided into documents."""

# A text line beyond this is read as several lines, so that a file without a single
# line break (some dumps are) cannot fill the memory.
_MAX_LINE_BYTES = 1 << 20


@dataclasses.dataclass
class Source:
    """One readable part of a corpus: a file, a split of a data set or the Python docs.

    Attributes:
        name: Where the text comes from, as error messages print it.
        on_bad_bytes: `"error"` or `"skip"`, for text that is not UTF-8.
        on_bad_rows: `"error"` or `"skip"`, for rows without a text.
        skipped: How many `"lines"` and `"rows"` the latest `lines()` skipped so far.
    """

    name: str
    on_bad_bytes: str = "error"
    on_bad_rows: str = "error"
    skipped: Counter = dataclasses.field(default_factory=Counter, init=False)

    def lines(self) -> Iterator[tuple[int, str]]:
        """Streams the non-blank lines, each with its document's number from 0."""
        raise NotImplementedError

    def identity(self) -> dict:
        """Returns marks that tell at once whether the source has changed."""
        return {"name": self.name}

    def fingerprint(self) -> str | None:
        """SHA-256 of its content, however it is called; None where it has no files."""
        return None

    def revision(self) -> str | None:
        """Which revision of a data set on a hub it is; None elsewhere."""
        return None

    @property
    def size(self) -> int:
        """Stored bytes, or 0 where unknown."""
        return 0

    def _bad_bytes(self, message: str) -> None:
        if self.on_bad_bytes == "error":
            raise CorpusError(
                f"{message}. Convert the file to UTF-8, or pass --on_bad_bytes skip "
                "(on_bad_bytes='skip') to leave such lines out."
            )
        self.skipped["lines"] += 1

    def _bad_row(self, message: str, error: Exception) -> None:
        if self.on_bad_rows == "error":
            raise CorpusError(
                f"{message}. Mend it, or pass --on_bad_rows skip (on_bad_rows='skip') "
                "to leave such rows out."
            ) from error
        self.skipped["rows"] += 1

    def _lines_of_rows(
        self, rows: Iterable[tuple[str, object]], column: str
    ) -> Iterator[tuple[int, str]]:
        """Streams the lines of rows, each of which is a document.

        Args:
            rows: The name of each row's place; and the row's text as a string or in
                UTF-8, or a `BadRow` that tells why the row has none.
            column: The name of the text's column in messages.
        """
        self.skipped.clear()
        document = 0
        for place, value in rows:
            try:
                text = _text_of(value, column)
            except UnicodeError as error:
                wrong = error.object[error.start : error.end]
                self._bad_bytes(
                    f"{self.name}: {place}: {wrong!r} in {column} is half a surrogate "
                    "pair, which is no Unicode text"
                    if isinstance(wrong, str)
                    else f"{self.name}: {place}, byte {error.start} of {column}: "
                    f"{wrong!r} is not valid UTF-8"
                )
            except BadRow as error:
                self._bad_row(f"{self.name}: {place}: {error}", error)
            else:
                lines = list(filter(None, map(str.strip, split_lines(text))))
                for line in lines:
                    yield document, line
                document += bool(lines)


def _text_of(value: object, column: str) -> str:
    if isinstance(value, BadRow):
        raise value
    if isinstance(value, bytes):
        return value.decode("utf-8")
    if not isinstance(value, str):
        json_text = json.dumps(value, default=str)
        raise BadRow(f"{column} is no string but {json_text:.60}")
    value.encode("utf-8")
    return value


@dataclasses.dataclass
class FileSource(Source):
    """A file; `name` is its path or its URL."""

    def fingerprint(self) -> str | None:
        """See `Source`; reads the file, unless it is at a URL, whose store tells."""
        if is_url(self.name):
            return None
        with open(self.name, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def identity(self) -> dict:
        """Path, size and modification time; of a URL the version that its store tells.

        A store that tells no version is trusted to keep its files as they are.
        """
        if is_url(self.name):
            size, version = version_at(self.name)
            return {"name": self.name, "bytes": size, "version": version}
        status = os.stat(self.name)
        return {
            "name": os.path.abspath(self.name),
            "bytes": status.st_size,
            "modified_ns": status.st_mtime_ns,
        }

    @property
    def size(self) -> int:
        """Stored bytes, compressed or not."""
        return self.identity()["bytes"]

    def _decoded_lines(
        self, max_bytes: int | None = None, errors: str = "strict"
    ) -> Iterator[tuple[int, str]]:
        """Streams `(line number from 1, text)`."""
        number, offset = 1, 0
        try:
            for number, offset, line in byte_lines(self.name, max_bytes):
                try:
                    text = line.decode("utf-8", errors)
                except UnicodeDecodeError as error:
                    self._bad_bytes(
                        f"{self.name}: line {number}, byte {offset + error.start}: "
                        f"{line[error.start : error.end]!r} is not valid UTF-8"
                    )
                else:
                    yield number, text
        except (DamagedFileError, OSError) as error:
            raise self._unreadable(
                f"line {number} (byte {offset} of the text)", error
            ) from error

    def _unreadable(self, place: str, error: Exception) -> CorpusError:
        return CorpusError(
            f"{self.name}: after {place}: the file is damaged, cut short or "
            f"unreadable ({error}). Replace it or take it out of the corpus."
        )


@dataclasses.dataclass
class TextSource(FileSource):
    """A text file.

    Attributes:
        documents: `"blank_lines"` if they separate documents, or `"lines"` if each
            line is a document.
    """

    documents: str = "blank_lines"

    def lines(self) -> Iterator[tuple[int, str]]:
        """Streams `(document, line)`."""
        self.skipped.clear()
        document, inside, last = 0, False, 0
        for number, line in self._decoded_lines(_MAX_LINE_BYTES):
            # A line may come in pieces, of one number.
            begins = self.documents == "lines" and number != last
            line, last = line.strip(), number
            if inside and (begins or not line):
                document, inside = document + 1, False
            if line:
                inside = True
                yield document, line


@dataclasses.dataclass
class JsonLinesSource(FileSource):
    """A file of JSON objects, one a line, each a document.

    Attributes:
        text_column: The field of the document.
    """

    text_column: str = "text"

    def lines(self) -> Iterator[tuple[int, str]]:
        """Streams `(document, line)`."""
        return self._lines_of_rows(self._rows(), f'the field "{self.text_column}"')

    def _rows(self):
        for number, line in self._decoded_lines():
            if line.strip():
                yield f"line {number}", self._field_of(line)

    def _field_of(self, line: str) -> object:
        try:
            parsed = json.loads(line)
        except (ValueError, RecursionError) as error:
            return BadRow(f"not JSON ({error})")
        if not isinstance(parsed, dict):
            return BadRow(f"no JSON object but a {type(parsed).__name__}")
        if self.text_column not in parsed:
            return BadRow(
                f'no field "{self.text_column}" (found {sorted(parsed)}); name the '
                "field that holds the document by --text_column"
            )
        return parsed[self.text_column]


@dataclasses.dataclass
class TableSource(FileSource):
    """A CSV or TSV file whose first line has the columns' names; a row is a document.

    Attributes:
        text_column: The column of the document.
    """

    text_column: str = "text"

    def lines(self) -> Iterator[tuple[int, str]]:
        """Streams `(document, line)`."""
        return self._lines_of_rows(self._rows(), f'the column "{self.text_column}"')

    def _rows(self):
        kind = "csv" if ends_in(self.name, CSV) else "tsv"
        # A line may be part of a cell: bytes that are not UTF-8 are found in the cell.
        lines = self._decoded_lines(errors="surrogateescape")
        index = None
        for number, cells in records(lines, kind):
            if isinstance(cells, BadRow):
                yield f"line {number}", cells
            elif index is None:
                index = index_of(self.text_column, cells, self.name)
            else:
                text = cells[index].encode("utf-8", "surrogateescape")
                yield f"line {number}", text


def index_of(column: str, names: list[str], source: str) -> int:
    """Finds the column of the text.

    Args:
        column: Its name.
        names: The names of all columns.
        source: Where they are.

    Returns:
        Its number.

    Raises:
        CorpusError: There is no column of this name, or there are two.
    """
    if names.count(column) != 1:
        many = "two columns" if column in names else "no column"
        raise CorpusError(
            f'{source}: {many} "{column}" (found {names}). Name the column that '
            "holds the documents by --text_column, or take the file out of the corpus."
        )
    return names.index(column)
