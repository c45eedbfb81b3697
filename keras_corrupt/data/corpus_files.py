"""The files that a path, a directory or a glob stands for, and the files left out."""

import glob
import itertools
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from keras_corrupt.files.urls import file_system, is_url

_PACKED = ("", ".gz", ".xz", ".zst")
# BabyLM's texts end in .train and .dev.
TEXT, JSON_LINES, CSV, TSV = (
    tuple(f".{kind}{packed}" for kind in kinds for packed in _PACKED)
    for kinds in (("txt", "train", "dev"), ("jsonl",), ("csv",), ("tsv",))
)
COLUMNAR = (".parquet", ".arrow")
EXTENSIONS = TEXT + JSON_LINES + CSV + TSV + COLUMNAR
"""File name endings that can be read, in small letters or capitals."""
_READABLE = (
    ".txt, .train, .dev, .jsonl, .csv, .tsv (each also .gz, .xz, .zst), .parquet, "
    ".arrow"
)

# Beside these a text is a vocabulary, and a table a run's: a run may be in the folder
# of its corpus.
_OWN_FILES = {"dataset.json", "tokenizer_settings.json", "run.json"}
_OWN_FOLDERS = "folders of examples, models or runs"
# Endings that are told apart; a folder may hold files of thousands.
_MOST_REASONS = 10


class CorpusError(ValueError):
    """A corpus that cannot be read, with the place and the remedy."""


class Omissions(dict[str, list]):
    """Why files are not read -> how many, and the first one's path. JSON-ready."""

    def add(self, reason: str, path: str) -> None:
        """Counts a file."""
        if reason not in self and len(self) >= _MOST_REASONS:
            reason = "others"
        count, first = self.get(reason, (0, path))
        self[reason] = [count + 1, first]


def ends_in(path: str, endings: tuple[str, ...]) -> bool:
    """Whether a path has one of some endings, in small letters or capitals."""
    return path.lower().endswith(endings)


def describe_omissions(
    omissions: dict[str, list], lines: int = 0, rows: int = 0
) -> str:
    """Says which parts of a corpus are not read.

    Args:
        omissions: Files, as `Omissions` has them.
        lines: Lines that were skipped because they are not UTF-8.
        rows: Rows that were skipped because they have no text.

    Returns:
        The end of a sentence; an empty string if nothing is left out.

    Example:
    >>> describe_omissions({"files ending in .md": [2, "a.md"]}, lines=1)
    '; left out: 2 files ending in .md (first: a.md), 1 lines that are not UTF-8'
    """
    parts = [
        f"{count:,} {reason} (first: {first})"
        for reason, (count, first) in omissions.items()
    ]
    parts += [f"{lines:,} lines that are not UTF-8"] * bool(lines)
    parts += [f"{rows:,} rows without a text"] * bool(rows)
    return f"; left out: {', '.join(parts)}" if parts else ""


def find_files(specification: str, omissions: Omissions) -> list[str]:
    """Finds files.

    Args:
        specification: A file, a glob or a directory, or the URL of one. A directory
            stands for each readable file in it, at any depth and behind links, each
            real folder once.
        omissions: Gets the files that are not to be read.

    Returns:
        The paths or URLs of the files to read, sorted.

    Raises:
        CorpusError: If nothing matches, a file's ending is unknown, a folder or a file
            cannot be read, or a path is no regular file (a pipe, a device).
    """
    if is_url(specification):
        return _at_url(specification, omissions)
    if os.path.isdir(specification):
        paths = sorted(_in_directory(specification, omissions))
        if not paths:
            raise CorpusError(
                f"corpus={specification!r}: the directory holds no file to read, which "
                f"ends in {_READABLE}{describe_omissions(omissions)}."
            )
    elif os.path.lexists(specification):
        paths = [specification]
    else:
        paths = list(_matches(specification, omissions))
    if not paths:
        raise CorpusError(
            f"corpus={specification!r}: no such file, directory or match"
            f"{describe_omissions(omissions)}. Known names besides paths: python-docs, "
            "tfds:NAME, hf-datasets:NAME."
        )
    for path in paths:
        _check(path)
    return paths


def _matches(pattern: str, omissions: Omissions) -> Iterator[str]:
    """Yields the files that a glob matches, sorted."""
    parts = Path(pattern).parts
    root = Path(*itertools.takewhile(lambda part: not glob.has_magic(part), parts))
    own_folders = set()
    for path in sorted(glob.glob(pattern, recursive=True)):
        within = (f for f in (Path(path), *Path(path).parents) if root in f.parents)
        if own := [str(folder) for folder in within if _is_own(folder)]:
            own_folders.add(own[-1])
        elif os.path.isdir(path):
            omissions.add("folders", path)
        else:
            yield path
    for folder in sorted(own_folders):
        omissions.add(_OWN_FOLDERS, folder)


def _at_url(url: str, omissions: Omissions) -> list[str]:
    """Returns the URLs of the readable files that a URL stands for, sorted."""
    try:
        files, path = file_system(url)
        is_directory = files.isdir(path)
        if is_directory:
            names = sorted(files.find(path))
        elif glob.has_magic(path):
            names = sorted(name for name in files.glob(path) if files.isfile(name))
        else:
            names = [path] if files.exists(path) else []
        addresses = [files.unstrip_protocol(name) for name in names]
    except Exception as error:  # each library has its own
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise CorpusError(f"corpus={url!r} cannot be read: {reason}") from error
    if is_directory:
        own = tuple(
            os.path.dirname(name) + "/"
            for name in addresses
            if os.path.basename(name) in _OWN_FILES
        )
        for folder in own:
            omissions.add(_OWN_FOLDERS, folder)
        addresses = [name for name in addresses if not name.startswith(own)]
        addresses = list(_readable(addresses, omissions))
    if not addresses:
        raise CorpusError(
            f"corpus={url!r}: no such file, directory or match, or no file there ends "
            f"in {_READABLE}{describe_omissions(omissions)}."
        )
    for name in addresses:
        _check_ending(name)
    return addresses


def _in_directory(directory: str, omissions: Omissions) -> Iterator[str]:
    """Yields the readable files of a directory."""
    root, seen = os.path.realpath(directory), set()
    for folder, folders, names in os.walk(directory, onerror=_raise, followlinks=True):
        folders.sort()  # each run then takes the same one of two ways to a folder
        real = os.path.realpath(folder)
        if real != root and os.path.commonpath([root, real]) == real:
            omissions.add("links to a folder above", folder)
            folders.clear()
        elif real in seen:
            folders.clear()
        elif _is_own(folder):
            omissions.add(_OWN_FOLDERS, folder)
            folders.clear()
        else:
            seen.add(real)
            paths = [os.path.join(folder, name) for name in sorted(names)]
            yield from _readable(paths, omissions)


def _is_own(folder: str | Path) -> bool:
    return any(os.path.exists(os.path.join(folder, name)) for name in _OWN_FILES)


def _readable(paths: list[str], omissions: Omissions) -> Iterator[str]:
    for path in paths:
        if ends_in(path, EXTENSIONS):
            yield path
        else:
            ending = os.path.splitext(path)[1].lower()
            omissions.add(f"files ending in {ending or 'nothing known'}", path)


def _raise(error: OSError):
    raise CorpusError(
        f"{error.filename}: cannot be read ({error.strerror}). Make it readable or "
        "take it out of the corpus."
    ) from error


def _check_ending(path: str) -> None:
    if not ends_in(path, EXTENSIONS):
        raise CorpusError(
            f"{path}: unknown extension. Readable are {_READABLE}. Let the name of "
            "plain text end in .txt."
        )


def _check(path: str) -> None:
    _check_ending(path)
    try:
        status = os.stat(path)
    except OSError as error:
        raise CorpusError(
            f"{path}: cannot be read ({error.strerror}; a link to nothing?). Restore "
            "the file or take it out of the corpus."
        ) from error
    if not stat.S_ISREG(status.st_mode):
        raise CorpusError(
            f"{path}: no file but a pipe, a socket or a device. Copy the text to a "
            "file, or take it out of the corpus."
        )
