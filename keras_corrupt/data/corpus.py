"""Corpus readers: text, JSON lines, TFDS and the documentation inside Python.

A corpus is a list of sources. A source streams `(document, line)` pairs: the number
of the document within the source and one line (a sentence or a paragraph) of it.
No reader holds more than one line in memory, so one document may be larger than
memory.
"""

import dataclasses
import glob
import json
import os
import sys
from collections.abc import Iterator, Sequence

from keras_corrupt.data.byte_lines import DamagedFileError, byte_lines
from keras_corrupt.data.python_docs import python_documents

_TEXT = (".txt", ".txt.gz", ".txt.xz", ".txt.zst")
_JSON_LINES = (".jsonl", ".jsonl.gz", ".jsonl.xz", ".jsonl.zst")
EXTENSIONS = _TEXT + _JSON_LINES
"""File name endings that `open_corpus` reads."""

# A text line beyond this is read as several lines, so that a file without a single
# line break (some dumps are) cannot fill the memory.
_MAX_LINE_BYTES = 1 << 20


class CorpusError(ValueError):
    """A corpus that cannot be read, with the place and the remedy."""


@dataclasses.dataclass
class Source:
    """One readable part of a corpus: a file, a TFDS split or the Python docs.

    Attributes:
        name: Where the text comes from, as error messages print it.
        on_bad_bytes: `"error"` or `"skip"`, for lines that are not UTF-8.
        skipped_lines: Lines that the latest `lines()` skipped so far.
    """

    name: str
    on_bad_bytes: str = "error"
    skipped_lines: int = dataclasses.field(default=0, init=False)

    def lines(self) -> Iterator[tuple[int, str]]:
        """Streams the non-blank lines, each with its document's number from 0."""
        raise NotImplementedError

    def identity(self) -> dict:
        """What tells whether the source changed since a dataset was built."""
        return {"name": self.name}

    @property
    def size(self) -> int:
        """Stored bytes, or 0 where unknown."""
        return 0

    def _bad_bytes(self, message: str) -> None:
        if self.on_bad_bytes == "error":
            raise CorpusError(
                f"{message}. Convert the file to UTF-8, or pass "
                "on_bad_bytes='skip' to leave such lines out."
            )
        self.skipped_lines += 1


@dataclasses.dataclass
class FileSource(Source):
    """A file in UTF-8; `name` is its path."""

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
        self.skipped_lines = 0
        number, offset = 1, 0
        try:
            for number, offset, line in byte_lines(self.name, max_bytes):
                try:
                    text = line.decode("utf-8-sig" if offset == 0 else "utf-8")
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


class TextSource(FileSource):
    """A text file whose documents are separated by blank lines."""

    def lines(self) -> Iterator[tuple[int, str]]:
        """Streams `(document, line)`."""
        document, inside = 0, False
        for _, line in self._decoded_lines(_MAX_LINE_BYTES):
            line = line.strip()
            if line:
                inside = True
                yield document, line
            elif inside:
                document, inside = document + 1, False


class JsonLinesSource(FileSource):
    """A file of JSON objects, one a line, each a document in its field "text"."""

    def lines(self) -> Iterator[tuple[int, str]]:
        """Streams `(document, line)`."""
        document = 0
        for number, record in self._decoded_lines(None):
            if not record.strip():
                continue
            text = self._text(number, record)
            try:
                text.encode("utf-8")
            except UnicodeEncodeError:
                self._bad_bytes(
                    f'{self.name}: line {number}: "text" holds half a surrogate '
                    "pair, which is no Unicode text"
                )
                continue
            lines = [line for line in map(str.strip, text.split("\n")) if line]
            for line in lines:
                yield document, line
            document += bool(lines)

    def _text(self, number: int, record: str) -> str:
        try:
            parsed = json.loads(record)
        except (ValueError, RecursionError) as error:
            raise CorpusError(
                f"{self.name}: line {number}: not JSON ({error}). A .jsonl corpus "
                "has one object a line."
            ) from error
        text = parsed.get("text") if isinstance(parsed, dict) else None
        if not isinstance(text, str):
            found = sorted(parsed) if isinstance(parsed, dict) else type(parsed)
            raise CorpusError(
                f'{self.name}: line {number}: no string field "text" (found '
                f"{found}). Rename the field that holds the document."
            )
        return text


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
        self.skipped_lines = 0
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
            for number, line in enumerate(example["text"].split(b"\n"), 1):
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


def open_corpus(
    corpus: str | Sequence[str], on_bad_bytes: str = "error"
) -> list[Source]:
    """Finds the sources of a corpus; reads none of them yet.

    Args:
        corpus: One or several of: a file (`.txt`, documents separated by blank
            lines, or `.jsonl`, documents in the field "text"; each also `.gz`,
            `.xz`, `.zst`), a glob, a directory (every such file in it, at any
            depth), `tfds:NAME` or `tfds:NAME:SPLIT`, or `python-docs`.
        on_bad_bytes: `"error"`, or `"skip"` to leave out lines that are not UTF-8.

    Returns:
        The sources, in the order given and sorted within a glob or a directory.

    Raises:
        CorpusError: If nothing matches, or a file's extension is unknown.

    Example:
    >>> [source.name for source in open_corpus("python-docs")]
    ['python-docs']
    """
    if on_bad_bytes not in ("error", "skip"):
        raise ValueError(f"on_bad_bytes={on_bad_bytes!r}: pass 'error' or 'skip'.")
    specifications = [corpus] if isinstance(corpus, str | os.PathLike) else corpus
    sources: list[Source] = []
    for specification in map(os.fspath, specifications):
        if specification == "python-docs":
            sources.append(PythonDocsSource(specification, on_bad_bytes))
        elif specification.startswith("tfds:"):
            sources.append(TfdsSource(specification, on_bad_bytes))
        else:
            for path in _matching_files(specification):
                reader = TextSource if path.endswith(_TEXT) else JsonLinesSource
                sources.append(reader(path, on_bad_bytes))
    if not sources:
        raise CorpusError("corpus is empty: name at least one file, glob or data set.")
    names = [source.name for source in sources]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise CorpusError(f"corpus names a source twice: {', '.join(repeated)}.")
    return sources


def _matching_files(specification: str) -> list[str]:
    if os.path.isdir(specification):
        paths = sorted(
            os.path.join(folder, name)
            for folder, _, names in os.walk(specification)
            for name in names
            if name.endswith(EXTENSIONS)
        )
        if not paths:
            raise CorpusError(
                f"corpus={specification!r}: the directory holds no file ending in "
                f"{', '.join(EXTENSIONS)}."
            )
        return paths
    if os.path.exists(specification):
        paths = [specification]
    else:
        paths = sorted(filter(os.path.isfile, glob.glob(specification, recursive=True)))
    if not paths:
        raise CorpusError(
            f"corpus={specification!r}: no such file, directory or match. Known "
            "names besides paths: python-docs, tfds:NAME."
        )
    for path in paths:
        if not path.endswith(EXTENSIONS):
            raise CorpusError(
                f"{path}: unknown extension. Readable are {', '.join(EXTENSIONS)}."
            )
    return paths
