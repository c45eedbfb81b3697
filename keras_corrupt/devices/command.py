"""What every command does: it is quiet at the start, and ends in a line.

Errors of a user, whatever raises them, are a line for the user, not a traceback.
"""

import contextlib
import os
import sys


class RunError(RuntimeError):
    """A run cannot go on. The message says why, and what to do."""


@contextlib.contextmanager
def command(how_to_go_on):
    """Decorates the function that a command calls.

    Args:
        how_to_go_on: What the last line says after "Stopped." if the user stops it.

    Raises:
        SystemExit: With 130, a shell's code for Ctrl-C; or with the line of an error.
    """
    hide_start_up_lines()
    try:
        with errors_in_a_line():
            yield
    except KeyboardInterrupt:
        print(f"\nStopped. {how_to_go_on}", file=sys.stderr)
        sys.exit(130)


@contextlib.contextmanager
def errors_in_a_line(words=str):
    """Ends the process where a user's setting, file or run is at fault.

    Args:
        words: Function of the error's message that returns it in the user's words.

    Raises:
        SystemExit: With the line.
    """
    try:
        yield
    except (ValueError, OSError, ImportError, RunError) as error:
        raise SystemExit(f"Error: {words(str(error))}") from error


def hide_start_up_lines():
    """Hides what TensorFlow logs of CPUs, drivers and streams that end.

    For commands, before TensorFlow is imported: what is an error comes as an exception,
    too. The environment variable `TF_CPP_MIN_LOG_LEVEL`, if it is set, decides instead.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
