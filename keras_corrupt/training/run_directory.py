"""The directory of a run: whose it is, and that nobody else writes to it."""

import contextlib
import json
import os
import sys
import tempfile

from keras_corrupt.files.urls import check_local
from keras_corrupt.files.whole import partial_of, write_whole

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

RUN_FILE = "run.json"
#: What a run has in it beside its settings: its examples, and where it went back.
EXAMPLES, RECOVERIES = "examples", "recoveries"
#: The setting of pretraining that numbers the orders of examples there have been.
ORDER = "order_of_examples"
#: What a directory can hold where a run has lost nothing yet.
BEGINNINGS = {RUN_FILE, partial_of(RUN_FILE).name}


@contextlib.contextmanager
def run_directory(output, settings, compared=dict, uncompared=()):
    """Makes `output` this run's directory, or checks that it is already.

    No other run can have it meanwhile. If the run fails before it wrote anything, the
    directory goes again.

    Args:
        output: A `Path`.
        settings: What a continued run must agree with, as JSON holds it.
        compared: Function of settings that returns those to compare.
        uncompared: Names of settings that something else decides.

    Raises:
        ValueError: The directory is another run's, or no run's, or in use.
        OSError: It cannot be made or written to.
    """
    check_local(output)
    try:
        is_new = not output.exists()
        output.mkdir(parents=True, exist_ok=True)
        # What cannot be written must show now, not at the first checkpoint.
        with tempfile.TemporaryFile(dir=output):
            pass
    except OSError as error:
        raise OSError(
            f"--output {output} cannot be the directory of a run: {error.strerror}. "
            "Mend that, or choose another."
        ) from error
    with locked(output):
        was = settings_in(output)
        if was is not None:
            same = dict.fromkeys((EXAMPLES, RECOVERIES, *uncompared))
            longer = was.get("steps") != settings.get("steps")
            remedy = of_more_steps(output, was) if longer else ""
            if was.get(ORDER) != settings.get(ORDER):
                remedy = (
                    " Another version of this package began it, which reads the "
                    "examples in another order: go on with that version."
                )
            before, asked = (compared(each) | same for each in (was, settings))
            check_same_run(output, before, asked, remedy)
        try:
            if was is None:
                write_whole(output / RUN_FILE, json.dumps(settings, indent=2) + "\n")
            yield
        except BaseException:
            if {path.name for path in output.iterdir()} <= BEGINNINGS:
                for name in BEGINNINGS:
                    (output / name).unlink(missing_ok=True)
                if is_new:
                    output.rmdir()
            raise


def settings_in(output):
    """Returns the settings of the run in a directory, `None` if there is none yet.

    Raises:
        ValueError: The directory holds something else, or they are damaged.
    """
    names = {path.name for path in output.iterdir()}
    path = output / RUN_FILE
    if path.name in names:
        try:
            settings = json.loads(path.read_text())
            if isinstance(settings, dict):
                return settings
        except ValueError:  # the machine crashed, or the file was copied badly
            pass
        if not names <= BEGINNINGS:
            raise ValueError(
                f"{path} is damaged. Run the same command with another --output, stop "
                "it, and copy its run.json here; then this run goes on."
            )
    elif not names <= BEGINNINGS:
        raise ValueError(
            f"--output {output} exists and is not the directory of a run. Choose a new "
            "one."
        )
    return None


def record_examples(output, fingerprints, where):
    """Adds to a run's settings what its examples are, or compares it.

    Args:
        output: The run's directory, a `Path`.
        fingerprints: A dict: `"vocabulary"` and `"text"` -> fingerprint.
        where: The examples, in the words of the command line.

    Raises:
        ValueError: The run was begun on others.
    """
    settings = settings_in(output)
    was = settings.get(EXAMPLES)
    if was is None:  # new
        settings[EXAMPLES] = fingerprints
        write_whole(output / RUN_FILE, json.dumps(settings, indent=2) + "\n")
        return
    # In their order: files may have other names than when the run was begun.
    for (name, value), before in zip(fingerprints.items(), was.values(), strict=False):
        if before != value:
            raise ValueError(
                f"{where} has another {name} than the run in {output} was begun on "
                f"(its fingerprint is {value[:12]}, was {before[:12]}). "
                "Put back what was there, or choose another --output."
            )


@contextlib.contextmanager
def locked(directory):
    """Keeps other processes out of `directory`, where its file system can."""
    if fcntl is None:
        print(
            f"Note: nothing keeps a second run out of {directory} on this system.",
            file=sys.stderr,
        )
        yield
        return
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


def check_same_run(output, old, new, remedy=""):
    """Raises a `ValueError` that lists the settings which are not as they were.

    Args:
        output: The run's directory.
        old: The run's settings, a dict.
        new: The settings of the command, a dict.
        remedy: What else helps, if anything.
    """
    differences = [
        f"{name}: was {old.get(name)!r}, asked {new.get(name)!r}"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]
    if differences:
        raise ValueError(
            f"{output} holds a run with other settings:\n  "
            + "\n  ".join(differences)
            + "\nRepeat its settings to continue it, choose another --output, or "
            f"delete it.{remedy}"
        )


def of_more_steps(output, settings):
    """Returns how to train on from a finished run, an empty text if it is none."""
    if not (output / "preset").is_dir():
        return ""
    if settings.get("schedule") == "stable":
        return (
            " To make it longer, give all settings to a new run with --resume_from "
            f"{output} and another --output."
        )
    return (
        " Its learning rate has ended at zero: to train its model further, start a new "
        f"run with --init_from {output / 'preset'} and another --output."
    )
