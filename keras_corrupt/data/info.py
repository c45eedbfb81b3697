"""The description of a prepared directory: `dataset.json`."""

import dataclasses
import hashlib
import json
import os
from pathlib import Path

import numpy as np

from keras_corrupt import tokenizers
from keras_corrupt.data.corpus_files import describe_omissions
from keras_corrupt.files.whole import write_whole

INFO_FILE = "dataset.json"
UNIGRAMS_FILE = "unigrams.npy"
_FORMAT = "keras_corrupt examples"
_FORMAT_VERSION = 1
_LATER_SETTINGS = {"text_column": "text", "on_bad_rows": "error"}


class DatasetError(ValueError):
    """A prepared directory or record file that cannot be used, with the remedy."""


@dataclasses.dataclass(frozen=True)
class Shard:
    """One TFRecord file of a split.

    Attributes:
        file: Its name within the directory.
        examples: Records in it.
        bytes: Its size.
        sha256: SHA-256 over its records' lengths and bytes.
    """

    file: str
    examples: int
    bytes: int
    sha256: str


@dataclasses.dataclass(frozen=True)
class Split:
    """The training or the validation part.

    Attributes:
        documents: Documents of text.
        examples: Examples, each of which is a record.
        tokens: Tokens of text, special tokens not counted.
        text_bytes: Text in UTF-8 bytes.
        shards: The files, in order.
        words: Words of text, what blanks separate; `None` where an older version
            prepared the examples.
    """

    documents: int
    examples: int
    tokens: int
    text_bytes: int
    shards: tuple[Shard, ...]
    words: int | None = None


@dataclasses.dataclass(frozen=True)
class DatasetInfo:
    """A prepared data set.

    Attributes:
        directory: Where it is.
        settings: The arguments that it was built with and that change the result.
        corpus: Name, size, modification time and SHA-256 of each source, or another
            mark of its content: the version that a store tells, a hub's revision.
        max_length: Tokens of the longest example allowed.
        vocabulary_size: Tokens of the vocabulary; every token id is below.
        tokenizer_fingerprint: `Tokenizer.fingerprint` of the tokenizer.
        skipped_lines: Lines left out because they were not UTF-8.
        skipped_rows: Rows left out because they had no text.
        left_out: Why files of the corpus were not read -> how many, and the first one.
        segmentation: How the tokenizer cuts held-out text, by `describe_segmentation`;
            its losses in all text; and `unknown_examples`, how many were left out.
        train: The training split.
        validation: The held-out documents.
    """

    directory: Path
    settings: dict
    corpus: list[dict]
    max_length: int
    vocabulary_size: int
    tokenizer_fingerprint: str
    skipped_lines: int
    skipped_rows: int
    left_out: dict[str, list]
    segmentation: dict
    train: Split
    validation: Split

    @property
    def fingerprint(self) -> str:
        """SHA-256 over all that decides the batches: equal means equal examples.

        It covers the content of all shards in their order, the tokenizer's fingerprint
        and `max_length`.
        """
        shards = {
            name: [shard.sha256 for shard in self.split(name).shards]
            for name in ("train", "validation")
        }
        parts = [self.tokenizer_fingerprint, self.max_length, shards]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def split(self, name: str) -> Split:
        """Returns a split by name.

        Args:
            name: `"train"` or `"validation"`.

        Returns:
            The split.

        Raises:
            ValueError: If there is no such split.
        """
        if name not in ("train", "validation"):
            raise ValueError(f"split={name!r}: the splits are 'train', 'validation'.")
        return getattr(self, name)

    def describe_corpus(self) -> str:
        """Says which sources were read, and which parts of the corpus were not.

        Returns:
            A line.
        """
        names = [source["name"] for source in self.corpus]
        more = f" and {len(names) - 3:,} more" * (len(names) > 3)
        return f"{', '.join(names[:3])}{more}" + describe_omissions(
            self.left_out, self.skipped_lines, self.skipped_rows
        )

    def unigrams(self) -> np.ndarray:
        """Counts of each token in the training text.

        Returns:
            An int64 array [vocabulary]; special tokens added by packing count 0.
        """
        return np.load(self.directory / UNIGRAMS_FILE, allow_pickle=False)

    def check_files(self) -> None:
        """Checks that the tokenizer and the shards are as they were written.

        It compares the sizes of the shards; their records are checked as they are read.

        Raises:
            DatasetError: If a file is missing, cut short or changed.
        """
        try:
            fingerprint = tokenizers.load(self.directory).fingerprint
        except ValueError as error:
            raise DatasetError(str(error)) from error
        if fingerprint != self.tokenizer_fingerprint:
            raise DatasetError(
                f"{self.directory}: the tokenizer there is not the one that "
                f"{INFO_FILE} records, with which the examples were made. Copy the "
                "directory again or prepare it again."
            )
        for shard in (*self.train.shards, *self.validation.shards):
            path = self.directory / shard.file
            if not path.is_file():
                raise DatasetError(
                    f"{path}: the shard is missing. Copy the directory again or "
                    "prepare it again."
                )
            if path.stat().st_size != shard.bytes:
                raise DatasetError(
                    f"{path}: has {path.stat().st_size} bytes, but {INFO_FILE} "
                    f"records {shard.bytes}; the copy was cut short or the file "
                    "changed. Copy the directory again or prepare it again."
                )


def save_dataset_info(info: DatasetInfo) -> None:
    """Writes `dataset.json`, in one atomic step.

    Args:
        info: Its content; goes into `info.directory`.
    """
    content = dataclasses.asdict(info)
    del content["directory"]
    content = {"format": _FORMAT, "format_version": _FORMAT_VERSION, **content}
    write_whole(info.directory / INFO_FILE, json.dumps(content, indent=1) + "\n")


def load_dataset_info(directory: str | os.PathLike) -> DatasetInfo:
    """Reads the description of a prepared directory.

    Args:
        directory: The `output` of `prepare_dataset`.

    Returns:
        The description. The other files are not looked at: see `check_files`.

    Raises:
        DatasetError: If the directory is not a complete prepared data set.
    """
    directory = Path(directory)
    path = directory / INFO_FILE
    if not path.is_file():
        raise DatasetError(
            f"{directory}: holds no {INFO_FILE}, so it is no prepared data set, or one "
            "that was not finished. Prepare it with `python -m keras_corrupt.data "
            f"prepare --corpus ... --output {directory}`."
        )
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content.pop("format") != _FORMAT:
            raise ValueError("another format")
        version = content.pop("format_version")
        if version != _FORMAT_VERSION:
            raise ValueError(f"format version {version}, not {_FORMAT_VERSION}")
        splits = {name: _split(content.pop(name)) for name in ("train", "validation")}
        # Examples from before these were settings.
        content["settings"] = _LATER_SETTINGS | content["settings"]
        return DatasetInfo(directory=directory, **splits, **content)
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise DatasetError(
            f"{path}: not a {INFO_FILE} that this version reads ({error!r}). Prepare "
            "the data set again."
        ) from error


def _split(content: dict) -> Split:
    shards = tuple(Shard(**shard) for shard in content.pop("shards"))
    for shard in shards:
        if os.path.basename(shard.file) != shard.file:
            raise ValueError(f"shard {shard.file!r} is outside the directory")
    return Split(shards=shards, **content)
