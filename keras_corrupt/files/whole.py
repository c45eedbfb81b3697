"""Files that are there complete, or as they were before."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO


def partial_of(path: str | os.PathLike) -> Path:
    """Returns where a file is until it is whole: `.NAME.partial` beside it."""
    path = Path(path)
    return path.with_name(f".{path.name}.partial")


def check_plain(path: str, content: str) -> None:
    """Raises a `ValueError` if `--output` has a compressed file's name.

    Args:
        path: The file.
        content: A noun for what is written, in the plural.
    """
    if path.lower().endswith((".gz", ".xz", ".zst")):
        raise ValueError(
            f"--output {path}: {content} are written as they are. Leave the last "
            "ending out, and compress the file."
        )


@contextlib.contextmanager
def whole_file(path: str | os.PathLike, mode: str = "w") -> Iterator[IO]:
    r"""Opens a file that takes its place when all of it is written.

    Until then, and if the process is killed or the computer stops, what was there
    before stays. A killed process may leave `partial_of` it, which the next write
    replaces.

    Args:
        path: The file.
        mode: `"w"` for text, in UTF-8 with `\n` at the end of lines, or `"wb"`.

    Yields:
        The file to write to.

    Raises:
        OSError: It cannot be written; says which file and why.
    """
    partial = partial_of(path)
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    try:
        with open(partial, mode, **text) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        if isinstance(error, OSError):
            raise OSError(
                f"Could not write {path}: {error.strerror or error}. Mend that, then "
                "run the same command again."
            ) from error
        raise


def write_whole(path: str | os.PathLike, text: str) -> None:
    """Writes a text file: see `whole_file`.

    Args:
        path: The file.
        text: What will be in it.

    Raises:
        OSError: It cannot be written; says which file and why.
    """
    with whole_file(path) as file:
        file.write(text)
