"""The directory of a prepared data set, which appears whole or not at all.

`prepare_dataset` (one machine) and the Beam pipeline (many) share it.
"""

import contextlib
import errno
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from keras_corrupt.data.chunks import Totals
from keras_corrupt.data.corpus import Corpus
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
from keras_corrupt.data.segmentation import check_lost_text, lost_shares
from keras_corrupt.data.sources import Source
from keras_corrupt.data.tfrecord import FOOTER_BYTES, HEADER_BYTES, frames
from keras_corrupt.files.lock import locked
from keras_corrupt.files.urls import check_local
from keras_corrupt.tokenizers import Tokenizer
from keras_corrupt.tokenizers.lost_text import LostText

# Records whose checksums are computed at once.
_WRITTEN_AT_ONCE = 1024
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


def find_prepared(output: Path, settings: dict, sources: Corpus) -> DatasetInfo | None:
    """Tells whether a directory already is the requested data set.

    Args:
        output: The directory.
        settings: The requested settings.
        sources: The requested corpus.

    Returns:
        Its description, or None if the directory is missing or empty.

    Raises:
        DatasetError: If it holds something else.
        ValueError: If it is a URL.
    """
    check_local(output)
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
    recorded = info.settings
    differences = [
        f"{name}: was {recorded.get(name)!r}, asked {settings.get(name)!r}"
        for name in sorted({*recorded, *settings})
        if recorded.get(name) != settings.get(name)
    ]
    differences += _other_sources(info.corpus, sources)
    if differences:
        raise DatasetError(
            f"output={str(output)!r} was prepared otherwise:\n  "
            + "\n  ".join(differences)
            + "\nChoose another output directory, or delete this one to prepare it "
            f"again. To train on it as it is, pass --data {output}."
        )
    info.check_files()
    return info


def _other_sources(recorded: list[dict], sources: Corpus) -> list[str]:
    """Lists how a corpus differs from the recorded one: in its content or its order.

    Files may have been moved, copied and touched since.
    """
    if len(recorded) == len(sources) and all(map(_is_unchanged, recorded, sources)):
        return []
    old = {source["name"]: source for source in recorded}
    new = {source.identity()["name"]: source for source in sources}
    removed = [name for name in old if name not in new]
    differences = [f"corpus: {name}: no longer asked" for name in removed]
    for name, source in new.items():
        if name not in old:
            differences.append(f"corpus: {name}: was not there")
        elif not _is_unchanged(old[name], source):
            differences.append(f"corpus: {name}: changed")
    return differences or ["corpus: another order"]


def _is_unchanged(recorded: dict, source: Source) -> bool:
    identity = {n: recorded[n] for n in recorded if n not in ("sha256", "revision")}
    if identity == source.identity():
        return True
    return "sha256" in recorded and (recorded["bytes"], recorded["sha256"]) == (
        source.size,
        source.fingerprint(),
    )


def describe_sources(sources: Corpus) -> list[dict]:
    """Describes the sources so that they are recognised later; reads all files.

    Args:
        sources: The corpus.

    Returns:
        For each source `Source.identity`, with its fingerprint as `sha256` and its
        `revision`, where it has one.
    """
    described = []
    for source in sources:
        versions = {"sha256": source.fingerprint(), "revision": source.revision()}
        versions = {name: value for name, value in versions.items() if value}
        described.append(source.identity() | versions)
    return described


@contextlib.contextmanager
def new_directory(output: Path) -> Iterator[Path]:
    """Makes a directory that appears complete or not at all.

    Its content is written to a hidden sibling, renamed at the end and removed on error.
    The next run removes the files that a killed run left there.

    Args:
        output: The directory; missing or empty.

    Yields:
        The sibling to write to.

    Raises:
        DatasetError: If another process is writing the same directory, or it cannot be
            written.
    """
    path = Path(os.path.realpath(output))
    if path == Path.cwd() or os.path.ismount(path):
        kind = "the current directory" if path == Path.cwd() else "a mount point"
        raise DatasetError(
            f"output={str(output)!r} is {kind}, which cannot be replaced. Name a new "
            "one in it."
        )
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _no_output(output, error) from error
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked(partial))
        except BlockingIOError as error:
            raise DatasetError(
                f"output={str(output)!r} is being prepared by another process. Wait "
                "for it, or choose another output."
            ) from error
        except OSError as error:
            raise _no_output(output, error) from error
        try:
            for leftover in partial.iterdir():
                leftover.unlink()
            yield partial
            os.replace(partial, path)
        except OSError as error:
            shutil.rmtree(partial, ignore_errors=True)
            if error.errno not in _DISK_FULL:
                raise
            raise _no_output(output, error) from error
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise


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
        self.path = path
        self._digest = hashlib.sha256()
        self._file = open(path, "wb")  # noqa: SIM115
        self._waiting: list[bytes] = []
        self.bytes = self.examples = 0

    def write(self, record: bytes) -> None:
        """Appends a record.

        Args:
            record: A serialised example.

        Raises:
            OSError: If the disk is full.
        """
        self._waiting.append(record)
        self._digest.update(len(record).to_bytes(8, "little") + record)
        self.examples += 1
        self.bytes += HEADER_BYTES + len(record) + FOOTER_BYTES
        if len(self._waiting) == _WRITTEN_AT_ONCE:
            self._write_waiting()

    def _write_waiting(self):
        self._file.write(frames(self._waiting))
        self._waiting.clear()

    def close(self) -> Shard:
        """Completes the file.

        Returns:
            Its description.

        Raises:
            OSError: If the disk is full.
        """
        self._write_waiting()
        self._file.close()
        digest = self._digest.hexdigest()
        return Shard(self.path.name, self.examples, self.bytes, digest)


def finish_directory(
    directory: Path,
    *,
    settings: dict,
    corpus: list[dict],
    left_out: dict[str, list],
    tokenizer: Tokenizer,
    totals: Totals,
    shards: dict[str, list[Shard]],
    skipped: tuple[int, int],
    segmentation: dict,
) -> None:
    """Writes the token counts and, last, `dataset.json`.

    Args:
        directory: Holds the shards and the tokenizer.
        settings: By `Plan.settings`.
        corpus: Its sources, by `describe_sources` before they were read.
        left_out: See `Corpus`.
        tokenizer: The tokenizer used.
        totals: Counts over all chunks.
        shards: Files of each split.
        skipped: How many lines and rows were left out.
        segmentation: By `describe_segmentation`, of a sample.

    Raises:
        DatasetError: If a split has no example, or the vocabulary does not know the
            text.
    """
    segmentation = {
        **segmentation,
        **lost_shares(LostText(**totals.lost)),
        "unknown_examples": totals.unknown_examples,
    }
    check_lost_text(segmentation, tokenizer.kind, bool(settings["vocabulary"]))
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
            left_out=left_out,
            max_length=settings["sequence_length"],
            vocabulary_size=tokenizer.vocabulary_size,
            tokenizer_fingerprint=tokenizer.fingerprint,
            skipped_lines=skipped[0],
            skipped_rows=skipped[1],
            segmentation=segmentation,
            **splits,
        )
    )
