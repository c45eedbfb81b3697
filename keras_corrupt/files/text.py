"""How text files are opened and cut into lines: one way for all readers.

They are UTF-8, with a byte order mark or without, plain or compressed (`.gz`, `.xz`,
`.zst`). A line ends with LF, CR or CRLF, and with nothing else: words may hold form
feeds and Unicode's other separators, and a text is one line to whoever wrote it.
"""

import codecs
import contextlib
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Iterable, Iterator
from typing import IO

from keras_corrupt.files.urls import opened

_BLOCK_BYTES = 1 << 18


class DamagedFileError(ValueError):
    """Compressed data that does not decompress to its end."""


def split_lines(text: str) -> list[str]:
    r"""Cuts text into lines.

    Args:
        text: Any string.

    Returns:
        The lines without their ends; an end of the text ends no further line.

    Example:
    >>> split_lines("a\r\nb\rc\x0cd\n")
    ['a', 'b', 'c\x0cd']
    """
    return [line.rstrip("\n") for line in io.StringIO(text, newline=None)]


def read_text(path: str | os.PathLike) -> str:
    r"""Reads a whole file.

    Args:
        path: The file.

    Returns:
        Its text, without a byte order mark and with `\n` at the end of each line.

    Raises:
        FileNotFoundError: See `text_lines`.
        ValueError: See `text_lines`.
    """
    return "".join(f"{line}\n" for _, line in text_lines(path))


def text_lines(
    path: str | os.PathLike, errors: str = "strict"
) -> Iterator[tuple[int, str]]:
    """Streams the lines of a file.

    Args:
        path: The file.
        errors: What to do about bytes that are not UTF-8; see `bytes.decode`.

    Yields:
        Line number from 1, and the line without its end.

    Raises:
        FileNotFoundError: There is no such file, or it is a folder, a pipe or a device.
        ValueError: The file is not UTF-8, or is damaged; names file and line.
    """
    if not os.path.isfile(path):
        raise FileNotFoundError(f"{path} is not a file.")
    yield from _decoded(byte_lines(path), path, errors)


def stream_lines(
    stream: IO[bytes], name: str, errors: str = "strict"
) -> Iterator[tuple[int, str]]:
    """Streams the lines of an open stream, such as a pipe, each as soon as it is there.

    Args:
        stream: The stream, of plain bytes.
        name: What to call it in errors.
        errors: As for `text_lines`.

    Yields:
        As `text_lines`.

    Raises:
        ValueError: If it is not UTF-8.
    """
    blocks = iter(lambda: stream.read1(_BLOCK_BYTES), b"")
    yield from _decoded(_lines(blocks), name, errors)


def _decoded(lines, name, errors):
    number = 0
    try:
        for number, offset, line in lines:
            try:
                text = line.decode("utf-8", errors)
            except UnicodeDecodeError as error:
                wrong = line[error.start : error.end]
                raise ValueError(
                    f"{name}:{number} is not UTF-8 text: byte {offset + error.start} "
                    f"is {wrong!r}. Convert the file to UTF-8."
                ) from error
            yield number, text
    except DamagedFileError as error:
        raise ValueError(
            f"{name} is damaged or cut short after line {number} ({error}). Copy it "
            "again."
        ) from error


def byte_lines(
    path: str | os.PathLike, max_bytes: int | None = None
) -> Iterator[tuple[int, int, bytes]]:
    """Streams the lines of a file as bytes, in bounded memory.

    Args:
        path: The file, or its URL.
        max_bytes: Length beyond which a line is given in pieces, cut at spaces. None
            never cuts, which costs the memory of the longest line.

    Yields:
        Line number from 1, offset of its first byte in the decompressed text, and the
        line without its end, the first one without a byte order mark; pieces of a line
        have the same number.

    Raises:
        DamagedFileError: If the compressed data is damaged or ends too early.
        OSError: If the file cannot be read.
    """
    yield from _lines(_blocks(os.fspath(path)), max_bytes)


def _lines(blocks, max_bytes=None):
    number, offset, rest = 1, 0, []
    for block in _whole_ends(blocks):
        for piece in block.splitlines(keepends=True):
            rest.append(piece)
            if piece.endswith((b"\n", b"\r")):
                whole = b"".join(rest)
                yield number, *_without_mark(offset, whole.rstrip(b"\r\n"))
                number, offset, rest = number + 1, offset + len(whole), []
        if max_bytes and sum(map(len, rest)) > max_bytes:
            whole = b"".join(rest)
            cut = _cut(whole)
            yield number, *_without_mark(offset, whole[:cut])
            offset, rest = offset + cut, [whole[cut:]]
    offset, whole = _without_mark(offset, b"".join(rest))
    if whole:
        yield number, offset, whole


def _without_mark(offset: int, line: bytes) -> tuple[int, bytes]:
    if not offset and line.startswith(codecs.BOM_UTF8):
        return len(codecs.BOM_UTF8), line[len(codecs.BOM_UTF8) :]
    return offset, line


def _cut(line: bytes) -> int:
    """Returns a place near the end of a line where no word or letter is split."""
    space = line.rfind(b" ") + 1
    if space:
        return space
    cut = len(line) - 1
    while cut > len(line) - 4 and line[cut] & 0xC0 == 0x80:
        cut -= 1
    return cut


def _whole_ends(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Gives blocks of which none ends between a CR and its LF."""
    held = b""
    for block in blocks:
        block = held + block
        held = b"\r" if block.endswith(b"\r") else b""
        yield block.removesuffix(held)
    yield held


def _blocks(path: str) -> Iterator[bytes]:
    kind = os.path.splitext(path)[1].lower()
    try:
        if kind == ".zst":
            yield from _zstandard_blocks(path)
            return
        unpack = {".gz": gzip.open, ".xz": lzma.open}.get(kind, contextlib.nullcontext)
        with opened(path) as packed, unpack(packed) as file:
            while block := file.read(_BLOCK_BYTES):
                yield block
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error) as error:
        raise DamagedFileError(str(error)) from error


def _zstandard_blocks(path: str) -> Iterator[bytes]:
    # The library's file reader ends silently where a file is cut short; its
    # decompression object tells.
    import zstandard

    unpacker, inside = zstandard.ZstdDecompressor().decompressobj(), False
    with opened(path) as file:
        while packed := file.read(_BLOCK_BYTES // 16):
            while packed:
                inside = True
                try:
                    yield unpacker.decompress(packed)
                except zstandard.ZstdError as error:
                    raise DamagedFileError(str(error)) from error
                packed = b""
                if unpacker.eof:
                    packed, inside = unpacker.unused_data, False
                    unpacker = zstandard.ZstdDecompressor().decompressobj()
    if inside:
        raise DamagedFileError("the last frame is incomplete")
