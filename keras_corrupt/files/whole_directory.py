"""Directories that are there complete, or as they were before."""

import contextlib
import glob
import os
import shutil
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def whole_directory(target: str | os.PathLike) -> Iterator[Path]:
    """Gives a directory to write into, which takes its place when all is written.

    Until then, and if the process is killed, what was there before stays; the next
    write, or `recovered`, puts right what a killed process left.

    Args:
        target: The directory.

    Yields:
        The directory to write into.
    """
    target = recovered(target)
    for left in (*_left_behind(target, "tmp"), *_left_behind(target, "old")):
        shutil.rmtree(left, ignore_errors=True)
    temporary = _beside(target, os.getpid(), "tmp")
    try:
        temporary.mkdir(parents=True)
        yield temporary
        if target.exists():
            old = _beside(target, os.getpid(), "old")
            target.rename(old)
            temporary.rename(target)
            old.rename(temporary)  # so that a directory called old is always whole
            shutil.rmtree(temporary)
        else:
            temporary.rename(target)
    except BaseException:
        recovered(target)
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def recovered(directory: str | os.PathLike) -> Path:
    """Returns a directory's path; moves it back if its replacement was broken off.

    Between two renames nothing is at the path.
    """
    directory = Path(directory)
    if not directory.exists():
        for old in _left_behind(directory, "old"):
            with contextlib.suppress(OSError):  # another process was faster
                old.rename(directory)
    return directory


def _beside(directory, process, kind):
    return directory.with_name(f".{directory.name}.{process}.{kind}")


def _left_behind(directory, kind):
    """Lists what processes that have ended left of a kind, or this one."""
    pattern = f".{glob.escape(directory.name)}.*.{kind}"
    paths = []
    for path in directory.parent.glob(pattern):
        process = path.name.split(".")[-2]
        named_so = process.isdecimal() and path == _beside(directory, process, kind)
        if named_so and not _runs(int(process)):
            paths.append(path)
    return paths


def _runs(process):
    if process == os.getpid():
        return False
    if os.name == "nt":  # where the question would be a Ctrl-C
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True
