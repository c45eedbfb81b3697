"""Locks of directories. They end with their process, even with a killed one."""

import contextlib
import os

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


@contextlib.contextmanager
def locked(directory):
    """Keeps out other processes that ask for the same lock.

    Args:
        directory: A directory's path.

    Yields:
        Whether there is a lock: not all systems and file systems have them.

    Raises:
        BlockingIOError: Another process has the lock.
    """
    descriptor = fcntl and os.open(directory, os.O_RDONLY)
    try:
        yield _lock(descriptor)
    finally:
        if fcntl:
            os.close(descriptor)


def _lock(descriptor):
    try:
        if fcntl:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:  # a file system without locks
        return False
    return fcntl is not None
