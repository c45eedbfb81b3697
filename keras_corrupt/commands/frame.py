"""The frame of every command: it is quiet at the start, and ends in a line.

Errors of a user, whatever raises them, are a line for the user, not a traceback.
"""

import contextlib
import dataclasses
import os
import re
import sys


class RunError(RuntimeError):
    """A run cannot go on. The message says why, and what to do."""


@contextlib.contextmanager
def command(how_to_go_on):
    """Decorates the function that a command calls.

    Args:
        how_to_go_on: The text after "Stopped." in the last line if the user stops it.

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
def errors_in_a_line(config=None):
    """Ends the process where a user's setting, file or run is at fault.

    Args:
        config: The settings, a dataclass whose fields are the command's flags, for
            messages in the words of the command line: see `in_flags`.

    Raises:
        SystemExit: With the line.
    """
    try:
        yield
    except (ValueError, OSError, ImportError, RunError) as error:
        message = in_flags(str(error), config) if config else error
        raise SystemExit(f"Error: {message}") from error


def hide_start_up_lines():
    """Hides TensorFlow's log lines about CPUs, drivers and streams that end.

    For commands, before TensorFlow is imported. Errors come as exceptions, too. The
    environment variable `TF_CPP_MIN_LOG_LEVEL`, if it is set, decides instead.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def in_flags(message, config):
    """Writes a message in the words of the command line.

    A field of the configuration, which messages have in backticks, becomes its flag; a
    file or directory that a message begins with is preceded by the flag that gave it.

    >>> from keras_corrupt.downstream import FinetuneConfig
    >>> config = FinetuneConfig(preset="runs/x", output="out")
    >>> in_flags("runs/x/config.json is damaged: leave out `search=True`.", config)
    '--preset runs/x/config.json is damaged: leave out --search.'
    """
    names = [field.name for field in dataclasses.fields(config)]

    def flag(match):
        value = (match[2] or "").strip("\"'")
        return f"--{match[1]}" + f" {value}" * (value not in ("", "True"))

    message = re.sub(rf"`({'|'.join(names)})(?:=([^`]*))?`", flag, message)
    for name in names:
        value = getattr(config, name)
        if value and isinstance(value, str):
            values = {value, os.path.normpath(value)}
            if re.match(rf"({'|'.join(map(re.escape, values))})[\s/:,]", message):
                return f"--{name} {message}"
    return message
