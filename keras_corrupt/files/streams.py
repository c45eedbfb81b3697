"""The standard input and output, which are UTF-8 in any locale."""

import contextlib
import os
import sys

from keras_corrupt.files.text import stream_lines


def input_lines():
    """Streams the lines of the standard input, each as soon as it is there.

    Yields:
        The number of each line, from 1, and the line.

    Raises:
        ValueError: A line is not UTF-8.
    """
    yield from stream_lines(sys.stdin.buffer, "standard input")


@contextlib.contextmanager
def standard_output():
    """Yields the standard output, as UTF-8 in any locale.

    The process ends quietly when the reader of the output ends, as with `| head`.
    """
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    try:
        yield sys.stdout
    except BrokenPipeError:
        # Python flushes once more at the end, where an error would be printed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)  # a shell's code for a broken pipe
