"""Parquet and Arrow files: tables whose columns are read alone, some rows at a time."""

import contextlib
import dataclasses
from collections.abc import Iterator

from keras_corrupt.data.corpus_files import CorpusError, ends_in
from keras_corrupt.data.sources import FileSource, index_of
from keras_corrupt.files.urls import is_url, opened

# Rows in memory at a time: a row may be a book.
_ROWS = 64
_BUFFER_BYTES = 1 << 20


@dataclasses.dataclass
class ColumnarSource(FileSource):
    """A Parquet file, or an Arrow file or stream; a row is a document.

    Attributes:
        text_column: The column of the document.
    """

    text_column: str = "text"

    def lines(self) -> Iterator[tuple[int, str]]:
        """Streams `(document, line)`."""
        return self._lines_of_rows(self._rows(), f'the column "{self.text_column}"')

    def _rows(self):
        try:
            import pyarrow
        except ImportError as error:
            raise CorpusError(
                f"{self.name}: needs pyarrow: pip install -e '.[parquet]'."
            ) from error
        parquet = ends_in(self.name, (".parquet",))
        columns, number = self._parquet if parquet else self._arrow, 0
        try:
            with self._opened() as file:
                for column in columns(file):
                    # As bytes: text that is not UTF-8 is found one by one.
                    for value in column.cast(pyarrow.large_binary()).to_pylist():
                        number += 1
                        yield f"row {number}", value
        except (pyarrow.ArrowException, OSError) as error:
            raise self._unreadable(f"row {number}", error) from error

    @contextlib.contextmanager
    def _opened(self):
        import pyarrow

        if is_url(self.name):
            with opened(self.name) as file:
                yield file
        else:  # a large batch of an Arrow file then needs no memory
            with pyarrow.memory_map(self.name) as file:
                yield file

    def _parquet(self, file):
        from pyarrow.parquet import ParquetFile

        # A row group may be larger than memory: it is read through a buffer.
        table = ParquetFile(file, buffer_size=_BUFFER_BYTES, pre_buffer=False)
        self._column_of(table.schema_arrow)
        for batch in table.iter_batches(_ROWS, columns=[self.text_column]):
            yield batch.column(0)

    def _arrow(self, file):
        from pyarrow import ipc

        is_stream = file.read(6) != b"ARROW1"
        file.seek(0)
        if is_stream:
            table = batches = ipc.open_stream(file)
        else:
            table = ipc.open_file(file)
            batches = map(table.get_batch, range(table.num_record_batches))
        index = self._column_of(table.schema)
        for batch in batches:
            for start in range(0, len(batch), _ROWS):
                yield batch.column(index).slice(start, _ROWS)

    def _column_of(self, schema) -> int:
        """Returns the number of the text's column, if it has text."""
        from pyarrow import types

        index = index_of(self.text_column, schema.names, self.name)
        kind = schema.field(index).type
        value = kind.value_type if types.is_dictionary(kind) else kind
        is_text = (types.is_string, types.is_large_string, types.is_string_view)
        if not any(test(value) for test in is_text):
            raise CorpusError(
                f'{self.name}: the column "{self.text_column}" has no text but {kind}. '
                "Name the column that holds the documents by --text_column."
            )
        return index
