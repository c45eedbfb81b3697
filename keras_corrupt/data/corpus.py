"""Corpus readers: text, JSON lines, TFDS and the documentation inside Python.

A corpus is a list of sources. A source streams `(document, line)` pairs: the number
of the document within the source and one line (a sentence or a paragraph) of it.
No reader holds more than one line in memory, so one document may be larger than
memory.
"""

import dataclasses
import hashlib
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

from keras_corrupt.data.corpus_files import (
    TEXT,
    CorpusError,
    LeftOut,
    ends_in,
    find_files,
)
from keras_corrupt.data.python_docs import python_documents
from keras_corrupt.files.text import DamagedFileError, byte_lines, split_lines

DOCUMENTS = ("blank_lines", "lines")
"""What the documents of a `.txt` file can be."""

# A text line beyond this is read as several lines, so that a file without a single
# line break (some dumps are) cannot fill the memory.
_MAX_LINE_BYTES = 1 << 20


@dataclasses.dataclass
class Source:
    """One readable part of a corpus: a file, a TFDS split or the Python docs.

    Attributes:
        name: Where the text comes from, as error messages print it.
        on_bad_bytes: `"error"` or `"skip"`, for lines that are not UTF-8.
        on_bad_rows: `"error"` or `"skip"`, for lines that are no JSON with a text.
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
        """What tells at once that the source is as it was when a dataset was built."""
        return {"name": self.name}

    def fingerprint(self) -> str | None:
        """SHA-256 of its content, however it is called; None where it has no files."""
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


@dataclasses.dataclass
class FileSource(Source):
    """A file in UTF-8; `name` is its path."""

    def fingerprint(self) -> str:
        """See `Source`; reads the file."""
        with open(self.name, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def identity(self) -> dict:
        """Path, size and modification time."""
        status = os.stat(self.name)
        return {
            "name": os.path.abspath(self.name),
            "bytes": status.st_size,
            "modified_ns": status.st_mtime_ns,
        }

    @property
    def size(self) -> int:
        """Bytes on the disk, compressed or not."""
        return os.path.getsize(self.name)

    def _decoded_lines(self, max_bytes: int | None) -> Iterator[tuple[int, str]]:
        """Streams `(line number from 1, text)`."""
        self.skipped.clear()
        number, offset = 1, 0
        try:
            for number, offset, line in byte_lines(self.name, max_bytes):
                try:
                    text = line.decode("utf-8")
                except UnicodeDecodeError as error:
                    self._bad_bytes(
                        f"{self.name}: line {number}, byte {offset + error.start}: "
                        f"{line[error.start : error.end]!r} is not valid UTF-8"
                    )
                else:
                    yield number, text
        except (DamagedFileError, OSError) as error:
            raise CorpusError(
                f"{self.name}: after line {number} (byte {offset} of the text): the "
                f"file is damaged, cut short or unreadable ({error}). Replace it or "
                "take it out of the corpus."
            ) from error


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


class JsonLinesSource(FileSource):
    """A file of JSON objects, one a line, each a document in its field "text"."""

    def lines(self) -> Iterator[tuple[int, str]]:
        """Streams `(document, line)`."""
        document = 0
        for number, record in self._decoded_lines(None):
            if not record.strip():
                continue
            try:
                text = _text_of(record)
                text.encode("utf-8")
            except UnicodeEncodeError:
                self._bad_bytes(
                    f'{self.name}: line {number}: "text" holds half a surrogate '
                    "pair, which is no Unicode text"
                )
            except (ValueError, RecursionError) as error:
                self._bad_row(f"{self.name}: line {number}: {error}", error)
            else:
                lines = list(filter(None, map(str.strip, split_lines(text))))
                for line in lines:
                    yield document, line
                document += bool(lines)

    def _bad_row(self, message: str, error: Exception) -> None:
        if self.on_bad_rows == "error":
            raise CorpusError(
                f"{message}. Mend the line, or pass --on_bad_rows skip "
                "(on_bad_rows='skip') to leave such lines out."
            ) from error
        self.skipped["rows"] += 1


def _text_of(record: str) -> str:
    """Returns the text of a line of JSON; raises a `ValueError` if it has none."""
    try:
        parsed = json.loads(record)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON ({error})") from error
    if not isinstance(parsed, dict):
        raise ValueError(f"no JSON object but a {type(parsed).__name__}")
    if "text" not in parsed:
        raise ValueError(
            f'no field "text" (found {sorted(parsed)}); the field that holds the '
            "document must have this name"
        )
    if not isinstance(parsed["text"], str):
        found = json.dumps(parsed["text"])
        raise ValueError(f'the field "text" is no string but {found:.60}')
    return parsed["text"]


@dataclasses.dataclass
class TfdsSource(Source):
    """A TensorFlow Datasets split with a feature "text", one document an example."""

    def lines(self) -> Iterator[tuple[int, str]]:
        """Streams `(document, line)`; downloads the data set the first time."""
        try:
            import tensorflow_datasets as tfds
        except ImportError as error:
            raise CorpusError(
                f"{self.name}: needs the package tensorflow-datasets. Install it "
                "with `pip install tensorflow-datasets`."
            ) from error
        self.skipped.clear()
        name, _, split = self.name.removeprefix("tfds:").partition(":")
        builder = tfds.builder(name)
        if "text" not in builder.info.features:
            raise CorpusError(
                f'{self.name}: no feature "text" (found '
                f"{sorted(builder.info.features)}). Choose a text corpus."
            )
        builder.download_and_prepare()
        examples = builder.as_dataset(split=split or "train", shuffle_files=False)
        for document, example in enumerate(tfds.as_numpy(examples)):
            for number, line in enumerate(example["text"].splitlines(), 1):
                try:
                    text = line.decode("utf-8").strip()
                except UnicodeDecodeError as error:
                    self._bad_bytes(
                        f"{self.name}: example {document}, line {number}, byte "
                        f"{error.start}: not valid UTF-8"
                    )
                    continue
                if text:
                    yield document, text


@dataclasses.dataclass
class PythonDocsSource(Source):
    """The documentation that ships inside Python itself; no download, real text.

    The language reference's topics (`pydoc help()`), then the docstrings of the
    standard library's modules, one document a module. Modules are parsed, never
    imported.
    """

    def identity(self) -> dict:
        """The Python version: its documentation is the corpus."""
        return {"name": self.name, "python": sys.version.split()[0]}

    def lines(self) -> Iterator[tuple[int, str]]:
        """Streams `(document, line)`."""
        for document, paragraphs in enumerate(python_documents()):
            for line in paragraphs:
                yield document, line


class Corpus(list[Source]):
    """The sources of a corpus.

    Attributes:
        left_out: Why files are not read -> how many, and the first one's path.
    """

    left_out: dict[str, list]

    @property
    def skipped(self) -> tuple[int, int]:
        """How many lines and how many rows the latest reading skipped."""
        return tuple(
            sum(source.skipped[kind] for source in self) for kind in ("lines", "rows")
        )


def open_corpus(
    corpus: str | Sequence[str],
    on_bad_bytes: str = "error",
    documents: str = "blank_lines",
    on_bad_rows: str = "error",
) -> Corpus:
    """Finds the sources of a corpus; reads none of them yet.

    Args:
        corpus: One or several of: a file (`.txt`, or `.jsonl`, documents in the field
            "text"; each also `.gz`, `.xz`, `.zst`), a glob, a directory (every such
            file in it, at any depth and behind links), `tfds:NAME` or
            `tfds:NAME:SPLIT`, or `python-docs`.
        on_bad_bytes: `"error"`, or `"skip"` to leave out lines that are not UTF-8.
        documents: What the documents of a `.txt` file are: separated by
            `"blank_lines"`, or `"lines"`, each of them one.
        on_bad_rows: `"error"`, or `"skip"` to leave out lines of a `.jsonl` file that
            are no JSON object with a string in the field "text".

    Returns:
        The sources, in the order given and sorted within a glob or a directory.

    Raises:
        CorpusError: If nothing matches, a file's extension is unknown, or a file is
            named twice, cannot be found or is none (a pipe, a device).

    Example:
    >>> [source.name for source in open_corpus("python-docs")]
    ['python-docs']
    """
    for name, value in (("on_bad_bytes", on_bad_bytes), ("on_bad_rows", on_bad_rows)):
        if value not in ("error", "skip"):
            raise ValueError(f"{name}={value!r}: pass 'error' or 'skip'.")
    if documents not in DOCUMENTS:
        raise ValueError(
            f"documents={documents!r}: pass one of {', '.join(DOCUMENTS)}."
        )
    specifications = [corpus] if isinstance(corpus, str | os.PathLike) else corpus
    sources, left_out = Corpus(), LeftOut()
    for specification in map(os.fspath, specifications):
        if specification == "python-docs":
            sources.append(PythonDocsSource(specification, on_bad_bytes))
        elif specification.startswith("tfds:"):
            sources.append(TfdsSource(specification, on_bad_bytes))
        else:
            for path in find_files(specification, left_out):
                if ends_in(path, TEXT):
                    source = TextSource(path, on_bad_bytes, documents=documents)
                else:
                    source = JsonLinesSource(path, on_bad_bytes, on_bad_rows)
                sources.append(source)
    if not sources:
        raise CorpusError("corpus is empty: name at least one file, glob or data set.")
    found: dict[str, str] = {}
    for source in sources:
        # However its path is written, and through links.
        real = os.path.realpath(source.name)
        if real in found:
            raise CorpusError(
                f"corpus names a source twice: {found[real]} and {source.name}. Take "
                "one of them out."
            )
        found[real] = source.name
    sources.left_out = left_out
    return sources
