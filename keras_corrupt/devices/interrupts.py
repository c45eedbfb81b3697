"""What Ctrl-C does to a command."""

import contextlib
import sys


@contextlib.contextmanager
def ends_in_a_line(how_to_go_on):
    """Ends the process in a line, not in a traceback, where the user stops it.

    Args:
        how_to_go_on: What the line says after "Stopped.".

    Raises:
        SystemExit: With 130, a shell's code for Ctrl-C.
    """
    try:
        yield
    except KeyboardInterrupt:
        print(f"\nStopped. {how_to_go_on}", file=sys.stderr)
        sys.exit(130)
