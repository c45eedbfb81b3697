"""The directory of a run: whose it is, and that nobody else writes to it."""

import contextlib
import fcntl
import json
import os


@contextlib.contextmanager
def run_directory(output, settings, defaults=None):
    """Makes `output` this run's directory, or checks that it is already.

    No other run can have it meanwhile. If what is done within fails before it wrote
    anything, the directory goes again.

    Args:
        output: A `Path`.
        settings: What a continued run must agree with, as JSON holds it.
        defaults: Values of settings that runs begun earlier did not have.

    Raises:
        ValueError: The directory is another run's, or no run's, or in use.
    """
    path = output / "run.json"
    if output.exists() and not path.exists():
        if not output.is_dir() or any(output.iterdir()):
            raise ValueError(
                f"--output {output} exists and is not the directory of a run. Choose "
                "a new one."
            )
    output.mkdir(parents=True, exist_ok=True)
    with locked(output):
        if path.exists():
            was = {**(defaults or {}), **json.loads(path.read_text())}
            check_same_run(output, was, settings)
        else:
            path.with_suffix(".tmp").write_text(json.dumps(settings, indent=2) + "\n")
            path.with_suffix(".tmp").replace(path)
        try:
            yield
        except BaseException:
            if list(output.iterdir()) == [path]:
                path.unlink()
                output.rmdir()
            raise


@contextlib.contextmanager
def locked(directory):
    """Keeps other processes out of `directory`, where its file system can."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise ValueError(
            f"Another process is training in {directory}. Choose another --output, or "
            "stop that one."
        ) from None
    except OSError:  # a file system without locks
        pass
    try:
        yield
    finally:
        os.close(descriptor)


def check_same_run(output, was, asked):
    """Raises a `ValueError` that lists the settings which are not as they were."""
    differences = [
        f"{name}: was {was.get(name)!r}, asked {asked.get(name)!r}"
        for name in sorted(was.keys() | asked.keys())
        if was.get(name) != asked.get(name)
    ]
    if differences:
        raise ValueError(
            f"{output} holds a run with other settings:\n  "
            + "\n  ".join(differences)
            + "\nRepeat its settings to continue it, choose another --output, or "
            "delete it."
        )
