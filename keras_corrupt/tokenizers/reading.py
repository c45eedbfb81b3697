"""Reading of a tokenizer's files, which may come from anywhere.

Nothing in them is executed, and no more than a bounded size is read.
"""

import os
import stat

import tokenizers

from keras_corrupt.files.text import split_lines
from keras_corrupt.tokenizers.vocabulary import MAX_TOKENS

#: Several times the largest vocabulary in use.
MAX_BYTES = 1 << 26


def read_bytes(path: str | os.PathLike, max_bytes: int = MAX_BYTES) -> bytes:
    """Reads a file.

    Args:
        path: The file.
        max_bytes: The largest size to read.

    Returns:
        Its content.

    Raises:
        ValueError: If it is no file, missing or larger.
    """
    path = os.fspath(path)
    if os.path.isdir(path):
        raise ValueError(
            f"{path} is a directory, not a vocabulary file. Pass the file, such as "
            f"{os.path.join(path, 'vocab.txt')}, or use load(directory)."
        )
    try:
        status = os.stat(path)
    except OSError as error:
        raise ValueError(f"{path}: no such vocabulary file.") from error
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{path}: no file but a pipe or a device. Copy it to a file.")
    if status.st_size > max_bytes:
        raise ValueError(f"{path}: too large for its kind, over {max_bytes:,} bytes.")
    with open(path, "rb") as file:
        return file.read(max_bytes)


def read_text(path: str | os.PathLike, max_bytes: int = MAX_BYTES) -> str:
    """Reads a file of UTF-8 text.

    Args:
        path: The file.
        max_bytes: The largest size to read.

    Returns:
        Its content, without a byte order mark.

    Raises:
        ValueError: If it cannot be read or is not UTF-8.
    """
    try:
        return read_bytes(path, max_bytes).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 ({error}).") from error


def read_vocabulary(path: str | os.PathLike) -> list[str]:
    """Reads a `vocab.txt`: one token a line, the line number being the id.

    Args:
        path: The file.

    Returns:
        The tokens.

    Raises:
        ValueError: If it cannot be read, is not UTF-8 or has too many lines.
    """
    text = read_text(path)
    if max(map(text.count, "\r\n")) > MAX_TOKENS:
        raise ValueError(f"{path}: over {MAX_TOKENS:,} tokens, one a line.")
    vocabulary = split_lines(text)
    while vocabulary and not vocabulary[-1]:
        vocabulary.pop()
    return vocabulary


def parse_engine(document: str, path: str | os.PathLike) -> tokenizers.Tokenizer:
    """Makes an engine of the text of a Hugging Face `tokenizer.json`.

    Args:
        document: The text.
        path: Its file, for the message.

    Returns:
        The engine.

    Raises:
        ValueError: If the `tokenizers` library does not read it.
    """
    try:
        return tokenizers.Tokenizer.from_str(document)
    except Exception as error:  # the library raises no narrower class
        raise ValueError(
            f"{path}: not a tokenizer.json that the tokenizers library reads ({error})."
        ) from error
