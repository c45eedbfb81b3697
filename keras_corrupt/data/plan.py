"""What a data set is to be made of, and the directory that it becomes.

Shared by `prepare_dataset` (one machine) and the Beam pipeline (many).
"""

import contextlib
import dataclasses
import errno
import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from keras_corrupt.data.chunks import Totals
from keras_corrupt.data.corpus import Source, open_corpus
from keras_corrupt.data.examples import MIN_LENGTH
from keras_corrupt.data.info import (
    INFO_FILE,
    UNIGRAMS_FILE,
    DatasetError,
    DatasetInfo,
    Shard,
    Split,
    load_dataset_info,
    save_dataset_info,
)
from keras_corrupt.data.splits import held_out_lines
from keras_corrupt.tokenizers import KINDS, Tokenizer, from_file
from keras_corrupt.tokenizers.growth import check_growth, grown
from keras_corrupt.tokenizers.vocabulary import MAX_TOKENS, check_size

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_FLAGS = ("lowercase", "strip_accents", "language_neutral")
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
# What was always so for directories that do not record it.
_FORMER_SETTINGS = {
    "tokenizer": "wordpiece",
    "documents": "blank_lines",
    "grow_vocabulary": 0,
}


@dataclasses.dataclass(frozen=True)
class Plan:
    """The settings of a data set; `prepare_dataset` describes each.

    Attributes:
        corpus: See `prepare_dataset`, as all others.
        vocabulary: Path of a vocabulary, or None to train one.
        tokenizer: Kind of the vocabulary, a key of `KINDS`.
        vocabulary_size: Tokens of a trained vocabulary.
        lowercase: Normalisation flag.
        strip_accents: Normalisation flag.
        language_neutral: Normalisation flag.
        max_length: Tokens of the longest example.
        validation_fraction: Share of documents held out.
        seed: Seed of all random choices.
        on_bad_bytes: `"error"` or `"skip"`.
        documents: `"blank_lines"` or `"lines"`.
        grow_vocabulary: Pieces to add to a given vocabulary.
    """

    corpus: str | Sequence[str]
    vocabulary: str | os.PathLike | None = None
    tokenizer: str = "wordpiece"
    vocabulary_size: int = 30522
    lowercase: bool = True
    strip_accents: bool = True
    language_neutral: bool = False
    max_length: int = 128
    validation_fraction: float = 0.005
    seed: int = 0
    on_bad_bytes: str = "error"
    documents: str = "blank_lines"
    grow_vocabulary: int = 0

    def __post_init__(self):
        if self.max_length < MIN_LENGTH:
            raise ValueError(
                f"max_length={self.max_length}: the least is {MIN_LENGTH}."
            )
        if not 0 < self.validation_fraction < 1:
            raise ValueError(
                f"validation_fraction={self.validation_fraction}: pass a share "
                "between 0 and 1, such as 0.005."
            )
        if self.tokenizer not in KINDS:
            raise ValueError(
                f"tokenizer={self.tokenizer!r}: pass one of {', '.join(KINDS)}."
            )
        check_size(self.vocabulary_size)
        if self.grow_vocabulary and self.vocabulary is None:
            raise ValueError(
                f"grow_vocabulary={self.grow_vocabulary}: there is none to grow. Pass "
                "its file as --vocabulary, or a larger --vocabulary_size to train one."
            )
        if not 0 <= self.grow_vocabulary <= MAX_TOKENS:
            raise ValueError(
                f"grow_vocabulary={self.grow_vocabulary}: pass the number of pieces to "
                f"add, from 0 to {MAX_TOKENS:,}."
            )
        for name in _FLAGS:
            if name not in self._flags and getattr(self, name):
                raise ValueError(
                    f"{name}=True is no flag of tokenizer={self.tokenizer!r}, which "
                    f"has {', '.join(self._flags)}. Leave it out."
                )

    def sources(self) -> list[Source]:
        """Opens the corpus."""
        return open_corpus(self.corpus, self.on_bad_bytes, self.documents)

    def given_tokenizer(self) -> Tokenizer | None:
        """Loads the vocabulary that the user gave, if one was given."""
        if self.vocabulary is None:
            return None
        given = from_file(self.vocabulary, **self._flags)
        if given.kind != self.tokenizer:
            raise ValueError(
                f"vocabulary={str(self.vocabulary)!r} is one of tokenizer="
                f"{given.kind!r}, not {self.tokenizer!r}. Pass that."
            )
        if self.grow_vocabulary:
            check_growth(given)
        return given

    def held_out_lines(self, sources: Sequence[Source]) -> list[str]:
        """Checks the splits; returns some held-out lines. See `splits`."""
        return held_out_lines(
            sources, fraction=self.validation_fraction, seed=self.seed
        )

    def make_tokenizer(
        self, given: Tokenizer | None, sources: Sequence[Source]
    ) -> Tokenizer:
        """Trains a vocabulary on the corpus, or grows the one that was given.

        Args:
            given: That of `given_tokenizer`.
            sources: The corpus; read once, or not at all.

        Returns:
            The tokenizer.
        """
        lines = (line for source in sources for _, line in source.lines())
        if given is None:
            kind = KINDS[self.tokenizer]
            return kind.train(lines, self.vocabulary_size, **self._flags)
        if self.grow_vocabulary:
            return grown(given, lines, self.grow_vocabulary)
        return given

    def settings(self, tokenizer: Tokenizer | None) -> dict:
        """Lists what the result depends on, besides the corpus.

        Args:
            tokenizer: That of `given_tokenizer`.

        Returns:
            Setting names and values, as JSON holds them.
        """
        return {
            "vocabulary": tokenizer and tokenizer.fingerprint,
            "tokenizer": self.tokenizer,
            "vocabulary_size": None if tokenizer else self.vocabulary_size,
            **{name: getattr(self, name) for name in _FLAGS},
            "max_length": self.max_length,
            "validation_fraction": self.validation_fraction,
            "seed": self.seed,
            "on_bad_bytes": self.on_bad_bytes,
            "documents": self.documents,
            "grow_vocabulary": self.grow_vocabulary,
        }

    @property
    def _flags(self) -> dict[str, bool]:
        names = KINDS[self.tokenizer].flag_names
        return {name: getattr(self, name) for name in names}


def find_prepared(
    output: Path, settings: dict, corpus: list[dict]
) -> DatasetInfo | None:
    """Looks whether a directory already is the data set that is asked for.

    Args:
        output: The directory.
        settings: Asked settings.
        corpus: Asked sources, by `Source.identity`.

    Returns:
        Its description, or None if the directory is missing or empty.

    Raises:
        DatasetError: If it holds something else.
    """
    try:
        if not output.exists() or (output.is_dir() and not any(output.iterdir())):
            return None
    except OSError as error:
        raise _no_output(output, error) from error
    if not (output / INFO_FILE).exists():
        raise DatasetError(
            f"output={str(output)!r} exists and is no prepared data set. Choose "
            "another directory; this one is left alone."
        )
    info = load_dataset_info(output)
    had = {**_FORMER_SETTINGS, **info.settings}
    differences = [
        f"{name}: was {had.get(name)!r}, asked {settings.get(name)!r}"
        for name in sorted({*had, *settings})
        if had.get(name) != settings.get(name)
    ]
    was = {source["name"]: source for source in info.corpus}
    asked = {source["name"]: source for source in corpus}
    for name in [*was, *(name for name in asked if name not in was)]:
        if was.get(name) != asked.get(name):
            kind = "changed" if name in was and name in asked else None
            kind = kind or ("no longer asked" if name in was else "was not there")
            differences.append(f"corpus: {name}: {kind}")
    if not differences and list(was) != list(asked):
        differences.append("corpus: another order")
    if differences:
        raise DatasetError(
            f"output={str(output)!r} was prepared otherwise:\n  "
            + "\n  ".join(differences)
            + "\nChoose another output directory, or delete this one to prepare it "
            "again."
        )
    info.check_files()
    return info


@contextlib.contextmanager
def new_directory(output: Path) -> Iterator[Path]:
    """Makes a directory that appears complete or not at all.

    Its content is written to a hidden sibling, renamed at the end and removed on error.
    What a killed run left there is removed by the next.

    Args:
        output: The directory; missing or empty.

    Yields:
        The sibling to write to.

    Raises:
        DatasetError: If another process is writing the same directory, or it cannot be
            written.
    """
    path = Path(os.path.abspath(output))
    if path == Path.cwd():
        raise DatasetError(
            f"output={str(output)!r} is the current directory, which cannot be "
            "replaced. Name a new one in it."
        )
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.mkdir(parents=True, exist_ok=True)
        lock = os.open(partial, os.O_RDONLY) if fcntl else None
    except OSError as error:
        raise _no_output(output, error) from error
    try:
        # The lock ends with the process, even a killed one.
        try:
            if fcntl:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise DatasetError(
                f"output={str(output)!r} is being prepared by another process. Wait "
                "for it, or choose another output."
            ) from error
        try:
            for leftover in partial.iterdir():
                leftover.unlink()
            yield partial
            os.replace(partial, output)
        except OSError as error:
            shutil.rmtree(partial, ignore_errors=True)
            if error.errno not in _DISK_FULL:
                raise
            raise _no_output(output, error) from error
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
    finally:
        if fcntl:
            os.close(lock)


def _no_output(output: Path, error: OSError) -> DatasetError:
    if error.errno in _DISK_FULL:
        problem = "the disk is full. Free space or choose another; nothing was left"
    else:
        problem = f"cannot be written: {error.strerror}. Choose another directory"
    return DatasetError(f"output={str(output)!r}: {problem}.")


class ShardWriter:
    """Writes one TFRecord file.

    Args:
        path: The file.
    """

    def __init__(self, path: Path):
        import tensorflow as tf

        self.path = path
        self._digest = hashlib.sha256()
        self.bytes = self.examples = 0
        self._tf_error = tf.errors.OpError
        self._writer = tf.io.TFRecordWriter(str(path))

    def write(self, record: bytes) -> None:
        """Appends a record.

        Args:
            record: A serialised example.

        Raises:
            OSError: If the disk is full.
        """
        with self._os_errors():
            self._writer.write(record)
        self._digest.update(len(record).to_bytes(8, "little") + record)
        self.examples += 1
        # A record's frame: length and two checksums.
        self.bytes += len(record) + 16

    def close(self) -> Shard:
        """Completes the file.

        Returns:
            Its description.

        Raises:
            OSError: If the disk is full.
        """
        with self._os_errors():
            self._writer.close()
        if self.path.stat().st_size != self.bytes:
            raise OSError(errno.ENOSPC, f"{self.path} was not written whole")
        digest = self._digest.hexdigest()
        return Shard(self.path.name, self.examples, self.bytes, digest)

    @contextlib.contextmanager
    def _os_errors(self):
        # TensorFlow reports a full disk as an error class of its own.
        try:
            yield
        except self._tf_error as error:
            raise OSError(errno.ENOSPC, error.message) from error


def finish_directory(
    directory: Path,
    *,
    settings: dict,
    corpus: list[dict],
    tokenizer: Tokenizer,
    totals: Totals,
    shards: dict[str, list[Shard]],
    skipped_lines: int,
    segmentation: dict,
) -> None:
    """Writes the token counts and, last, `dataset.json`.

    Args:
        directory: Holds the shards and the tokenizer.
        settings: By `Plan.settings`.
        corpus: The sources, by `Source.identity`.
        tokenizer: The tokenizer used.
        totals: Counts over all chunks.
        shards: Files of each split.
        skipped_lines: Lines that were left out.
        segmentation: By `describe_segmentation`.

    Raises:
        DatasetError: If a split has no example.
    """
    for name, written in shards.items():
        if not written:
            raise DatasetError(
                f"no document of the {name} split has a token. Clean the corpus, or "
                "pass another --validation_fraction or --seed."
            )
    np.save(directory / UNIGRAMS_FILE, totals.unigrams, allow_pickle=False)
    splits = {
        name: Split(**counts, shards=tuple(shards[name]))
        for name, counts in totals.counts.items()
    }
    save_dataset_info(
        DatasetInfo(
            directory=directory,
            settings=settings,
            corpus=corpus,
            max_length=settings["max_length"],
            vocabulary_size=tokenizer.vocabulary_size,
            tokenizer_fingerprint=tokenizer.fingerprint,
            skipped_lines=skipped_lines,
            segmentation=segmentation,
            **splits,
        )
    )
