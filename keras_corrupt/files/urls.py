"""Files at URLs, such as `gs://bucket/a.txt`: `fsspec` reads them."""

import contextlib
import os
import re
from collections.abc import Iterator
from typing import IO

#: Protocol -> the extra that brings its library.
_EXTRAS = {"gs": "gs", "gcs": "gs", "s3": "s3", "s3a": "s3"}
#: What stores call the version of a file.
_VERSIONS = ("ETag", "etag", "blob_id", "mtime", "LastModified", "created")


def is_url(path: str | os.PathLike) -> bool:
    """Whether a path is a URL.

    >>> is_url("gs://bucket/a.txt"), is_url("data/a.txt"), is_url("tfds:wiki")
    (True, False, False)
    """
    return "://" in os.fspath(path)


def check_local(output: str | os.PathLike) -> None:
    """Checks that a directory to write is on a file system.

    Args:
        output: The directory, as text or as a `Path`, which has lost a slash.

    Raises:
        ValueError: It is a URL.
    """
    if re.match(r"[a-z][a-z0-9+.-]+:/", os.fspath(output)):
        raise ValueError(
            f"--output {os.fspath(output)}: a directory appears whole, by one rename, "
            "and a store of objects cannot rename. Name a local or a mounted "
            "directory, and copy it there when it is done."
        )


def file_system(url: str):
    """Returns what reads a URL.

    Args:
        url: The URL.

    Returns:
        The `fsspec` file system, and the URL's path in it.

    Raises:
        ValueError: No library for it is installed, or it is wrong.
    """
    protocol = url.partition("://")[0]
    extra = _EXTRAS.get(protocol)
    install = f": pip install -e '.[{extra}]'" if extra else ""
    try:
        from fsspec.core import url_to_fs

        return url_to_fs(url)
    except ImportError as error:
        raise ValueError(f"{url} needs a library{install or f' ({error})'}.") from error


def version_at(url: str) -> tuple[int, str | None]:
    """Asks a store about a file.

    Args:
        url: The file's URL.

    Returns:
        Its bytes, and what tells it from other content, if the store does.
    """
    files, path = file_system(url)
    info = files.info(path)
    versions = (info[name] for name in _VERSIONS if info.get(name))
    return info["size"] or 0, str(next(versions, "")) or None


@contextlib.contextmanager
def opened(path: str | os.PathLike) -> Iterator[IO[bytes]]:
    """Opens a file, or the content of a URL, to read its bytes.

    Args:
        path: A path or a URL.

    Yields:
        The file.

    Raises:
        OSError: It cannot be read.
    """
    if not is_url(path):
        with open(path, "rb") as file:
            yield file
        return
    files, inner = file_system(os.fspath(path))
    try:
        with files.open(inner, "rb") as file:
            yield file
    except (OSError, ValueError):
        raise
    except Exception as error:  # each library has its own
        raise OSError(str(error)) from error
