"""Text of data sets that libraries know by name: TensorFlow's and Hugging Face's."""

import dataclasses
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from keras_corrupt.data.corpus_files import CorpusError
from keras_corrupt.data.sources import FileSource, Source, index_of


@dataclasses.dataclass
class TfdsSource(Source):
    """A split of TensorFlow Datasets, one document an example.

    Attributes:
        text_column: The feature of the document.
    """

    text_column: str = "text"

    def lines(self) -> Iterator[tuple[int, str]]:
        """Streams `(document, line)`; downloads the data set the first time."""
        try:
            import tensorflow_datasets as tfds
        except ImportError as error:
            raise CorpusError(
                f"{self.name}: needs tensorflow-datasets: pip install -e '.[tfds]'."
            ) from error
        name, _, split = self.name.removeprefix("tfds:").partition(":")
        builder = tfds.builder(name)
        if self.text_column not in builder.info.features:
            raise CorpusError(
                f'{self.name}: no feature "{self.text_column}" (found '
                f"{sorted(builder.info.features)}). Choose a text corpus, or name the "
                "feature that holds the documents by --text_column."
            )
        builder.download_and_prepare()
        examples = builder.as_dataset(split=split or "train", shuffle_files=False)
        rows = (
            (f"example {number}", example[self.text_column])
            for number, example in enumerate(tfds.as_numpy(examples))
        )
        yield from self._lines_of_rows(rows, f'the feature "{self.text_column}"')


@dataclasses.dataclass
class HuggingFaceSource(Source):
    """A split of a data set of the Hugging Face Hub, streamed; a row is a document.

    The name is `hf-datasets:NAME[@REVISION][:CONFIG][:SPLIT]`. Without a revision it is
    the newest one when the text is first read, and all readings read this one. NAME may
    be a directory, whose files tell whether it has changed.

    Attributes:
        text_column: The column of the document.
    """

    text_column: str = "text"
    _revision: str | None = dataclasses.field(default=None, init=False)

    def lines(self) -> Iterator[tuple[int, str]]:
        """Streams `(document, line)`."""
        return self._lines_of_rows(self._rows(), f'the column "{self.text_column}"')

    def identity(self) -> dict:
        """The name; of a directory also its size and the last change of a file."""
        files = [file.identity() for file in self._files()]
        if not files:
            return super().identity()
        return {
            "name": self.name,
            "bytes": sum(file["bytes"] for file in files),
            "modified_ns": max(file["modified_ns"] for file in files),
        }

    def fingerprint(self) -> str | None:
        """SHA-256 of a directory's files."""
        prints = [file.fingerprint() for file in self._files()]
        return hashlib.sha256("".join(prints).encode()).hexdigest() if prints else None

    @property
    def size(self) -> int:
        """Stored bytes of a directory."""
        return self.identity().get("bytes", 0)

    def _files(self) -> list[FileSource]:
        paths = sorted(Path(self._parts()[0]).rglob("*"))
        return [FileSource(str(path)) for path in paths if path.is_file()]

    def revision(self) -> str | None:
        """The commit that is read; None of a directory."""
        name, revision, _, _ = self._parts()
        if self._revision is None and not os.path.isdir(name):
            try:
                from huggingface_hub import HfApi

                info = HfApi().dataset_info(name, revision=revision, timeout=60)
            except Exception as error:
                raise self._unreadable(error) from error
            self._revision = info.sha
        return self._revision

    def _parts(self) -> tuple[str, str | None, str | None, str]:
        """Returns the data set's name, the revision asked for, config and split."""
        name, _, rest = self.name.removeprefix("hf-datasets:").partition(":")
        config, _, split = rest.partition(":")
        name, _, revision = name.partition("@")
        return name, revision or None, config or None, split or "train"

    def _rows(self):
        name, _, config, split = self._parts()
        number = 0
        try:
            from datasets import load_dataset

            rows = load_dataset(
                name, config, split=split, streaming=True, revision=self.revision()
            )
            if rows.column_names:
                index_of(self.text_column, list(rows.column_names), self.name)
                rows = rows.select_columns([self.text_column])
            for number, row in enumerate(rows, 1):
                yield f"row {number}", row.get(self.text_column)
        except CorpusError:
            raise
        except Exception as error:  # the library's own errors, and file systems' errors
            raise self._unreadable(error, number) from error

    def _unreadable(self, error: Exception, number: int = 0) -> CorpusError:
        if isinstance(error, ImportError):
            return CorpusError(
                f"{self.name}: needs datasets: pip install -e '.[hf-datasets]'."
            )
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        return CorpusError(
            f"{self.name}: after row {number}: cannot be read ({reason}). Names are "
            "hf-datasets:NAME[@REVISION][:CONFIG][:SPLIT]; a split of the data set's "
            "only config is NAME::SPLIT."
        )
