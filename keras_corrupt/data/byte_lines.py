"""Lines of plain and compressed files, as bytes, in bounded memory."""

import gzip
import lzma
import os
import zlib
from collections.abc import Iterator

_BLOCK_BYTES = 1 << 18


class DamagedFileError(Exception):
    """Compressed data that does not decompress to its end."""


def byte_lines(
    path: str, max_bytes: int | None = None
) -> Iterator[tuple[int, int, bytes]]:
    """Streams the lines of a file.

    Args:
        path: The file; `.gz`, `.xz` and `.zst` are decompressed.
        max_bytes: Length beyond which a line is given in pieces, cut at spaces. None
            never cuts, which costs the memory of the longest line.

    Yields:
        Line number from 1, offset of its first byte in the decompressed text, and the
        line without its end; pieces of a line have the same number.

    Raises:
        DamagedFileError: If the compressed data is damaged or ends too early.
        OSError: If the file cannot be read.
    """
    number, offset, rest = 1, 0, []
    for block in _blocks(path):
        first, *others = block.split(b"\n")
        rest.append(first)
        for line in others:
            whole = b"".join(rest)
            yield number, offset, whole
            number, offset, rest = number + 1, offset + len(whole) + 1, [line]
        if max_bytes and sum(map(len, rest)) > max_bytes:
            whole = b"".join(rest)
            cut = _cut(whole)
            yield number, offset, whole[:cut]
            offset, rest = offset + cut, [whole[cut:]]
    if whole := b"".join(rest):
        yield number, offset, whole


def _cut(line: bytes) -> int:
    """Returns a place near the end of a line where no word or letter is split."""
    space = line.rfind(b" ") + 1
    if space:
        return space
    cut = len(line) - 1
    while cut > len(line) - 4 and line[cut] & 0xC0 == 0x80:
        cut -= 1
    return cut


def _blocks(path: str) -> Iterator[bytes]:
    try:
        if path.endswith(".zst"):
            yield from _zstandard_blocks(path)
            return
        opener = {".gz": gzip.open, ".xz": lzma.open}.get(os.path.splitext(path)[1])
        with (opener or open)(path, "rb") as file:
            while block := file.read(_BLOCK_BYTES):
                yield block
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error) as error:
        raise DamagedFileError(str(error)) from error


def _zstandard_blocks(path: str) -> Iterator[bytes]:
    # The library's file reader ends silently where a file is cut short; its
    # decompression object tells.
    import zstandard

    unpacker, inside = zstandard.ZstdDecompressor().decompressobj(), False
    with open(path, "rb") as file:
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
