"""The sources that a corpus names: files, data sets, the documentation in Python."""

import dataclasses
import os
import sys
from collections.abc import Iterator, Sequence

from keras_corrupt.data.columnar import ColumnarSource
from keras_corrupt.data.corpus_files import (
    COLUMNAR,
    JSON_LINES,
    TEXT,
    CorpusError,
    Omissions,
    ends_in,
    find_files,
)
from keras_corrupt.data.hubs import HuggingFaceSource, TfdsSource
from keras_corrupt.data.python_docs import python_documents
from keras_corrupt.data.sources import (
    DOCUMENTS,
    FileSource,
    JsonLinesSource,
    Source,
    TableSource,
    TextSource,
)


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
    text_column: str = "text",
) -> Corpus:
    """Finds the sources of a corpus; reads none of them yet.

    Args:
        corpus: One or several of: a file (`.txt`, BabyLM's `.train` and `.dev`, or, a
            document a row, `.jsonl`, `.csv`, `.tsv`; each also `.gz`, `.xz`, `.zst`;
            `.parquet`, `.arrow`), a glob, a directory (every such file in it, at any
            depth and behind links), any of these as a URL that `fsspec` reads
            (`gs://`, `s3://`), `tfds:NAME[:SPLIT]`,
            `hf-datasets:NAME[@REVISION][:CONFIG][:SPLIT]`, or `python-docs`.
        on_bad_bytes: `"error"`, or `"skip"` to leave out lines that are not UTF-8.
        documents: How a `.txt` file is divided into documents: by `"blank_lines"`, or
            into `"lines"`, each of which is one.
        on_bad_rows: `"error"`, or `"skip"` to leave out rows without a text.
        text_column: The column, field or feature that holds the documents, wherever
            they are rows.

    Returns:
        The sources, in the order given and sorted within a glob or a directory.

    Raises:
        CorpusError: If nothing matches, a file's extension is unknown, or a file is
            named twice, cannot be found or is no regular file (a pipe, a device).

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
    bad = on_bad_bytes, on_bad_rows
    sources, omissions = Corpus(), Omissions()
    for specification in map(os.fspath, specifications):
        if specification == "python-docs":
            sources.append(PythonDocsSource(specification, on_bad_bytes))
        elif specification.startswith("tfds:"):
            sources.append(TfdsSource(specification, *bad, text_column))
        elif specification.startswith("hf-datasets:"):
            sources.append(HuggingFaceSource(specification, *bad, text_column))
        else:
            for path in find_files(specification, omissions):
                if ends_in(path, TEXT):
                    source = TextSource(path, *bad, documents)
                else:
                    source = _table_class(path)(path, *bad, text_column)
                sources.append(source)
    if not sources:
        raise CorpusError("corpus is empty: name at least one file, glob or data set.")
    names: dict[str, str] = {}
    for source in sources:
        # A file has one real path, however its name is written, and through links.
        real = os.path.realpath(source.name)
        if real in names:
            raise CorpusError(
                f"corpus names a source twice: {names[real]} and {source.name}. Take "
                "one of them out."
            )
        names[real] = source.name
    sources.left_out = omissions
    return sources


def _table_class(path: str) -> type[FileSource]:
    if ends_in(path, JSON_LINES):
        return JsonLinesSource
    return ColumnarSource if ends_in(path, COLUMNAR) else TableSource
