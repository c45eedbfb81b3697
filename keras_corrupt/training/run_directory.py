"""The directory of a run, which belongs to one run and has one writer."""

import contextlib
import json
import sys
import tempfile

from keras_corrupt.files import lock
from keras_corrupt.files.urls import check_local
from keras_corrupt.files.whole import partial_of, write_whole

RUN_FILE = "run.json"
#: Keys of this file beside the settings: the run's examples, and its recoveries.
EXAMPLES, RECOVERIES = "examples", "recoveries"
#: The setting of pretraining that has the version of the order of examples.
ORDER = "order_of_examples"
#: Files in the directory of a run that has no progress to lose yet.
BEGINNINGS = {RUN_FILE, partial_of(RUN_FILE).name}


@contextlib.contextmanager
def run_directory(output, settings, compared=dict, uncompared=()):
    """Makes `output` this run's directory, or checks that it is already.

    No other run can use it meanwhile. If the run fails before it wrote anything, the
    directory is removed.

    Args:
        output: A `Path`.
        settings: Settings that a continued run must agree with, as JSON holds them.
        compared: Function of settings that returns the settings to compare.
        uncompared: Names of settings that something else decides.

    Raises:
        ValueError: The directory is another run's, or no run's, or in use.
        OSError: It cannot be made or written to.
    """
    check_local(output)
    try:
        is_new = not output.exists()
        output.mkdir(parents=True, exist_ok=True)
        # A directory that cannot be written to must show now, not at a checkpoint.
        with tempfile.TemporaryFile(dir=output):
            pass
    except OSError as error:
        raise OSError(
            f"--output {output} cannot be the directory of a run: {error.strerror}. "
            "Mend that, or choose another."
        ) from error
    with locked(output):
        old = settings_in(output)
        if old is not None:
            ignored = dict.fromkeys((EXAMPLES, RECOVERIES, *uncompared))
            longer = old.get("steps") != settings.get("steps")
            remedy = remedy_for_more_steps(output, old) if longer else ""
            if old.get(ORDER) != settings.get(ORDER):
                remedy = (
                    " Another version of this package began it, which reads the "
                    "examples in another order: go on with that version."
                )
            pair = (compared(each) | ignored for each in (old, settings))
            check_same_run(output, *pair, remedy)
        try:
            if old is None:
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
    """Adds a run's examples to its settings, or compares them with the recorded ones.

    Args:
        output: The run's directory, a `Path`.
        fingerprints: A dict: `"vocabulary"` and `"text"` -> fingerprint.
        where: The examples, in the words of the command line.

    Raises:
        ValueError: The run was begun on others.
    """
    settings = settings_in(output)
    recorded = settings.get(EXAMPLES)
    if recorded is None:  # a new run
        settings[EXAMPLES] = fingerprints
        write_whole(output / RUN_FILE, json.dumps(settings, indent=2) + "\n")
        return
    # In their order: files may have other names than when the run was begun.
    pairs = zip(fingerprints.items(), recorded.values(), strict=False)
    for (name, value), old_value in pairs:
        if old_value != value:
            raise ValueError(
                f"{where} has another {name} than the run in {output} was begun on "
                f"(its fingerprint is {value[:12]}, was {old_value[:12]}). "
                "Put back what was there, or choose another --output."
            )


@contextlib.contextmanager
def locked(directory):
    """Keeps other processes out of `directory`, where its file system can."""
    with contextlib.ExitStack() as stack:
        try:
            has_lock = stack.enter_context(lock.locked(directory))
        except BlockingIOError:
            raise ValueError(
                f"Another process is training in {directory}. Choose another --output, "
                "or stop that one."
            ) from None
        if not has_lock:
            print(
                f"Note: nothing keeps a second run out of {directory} on this system.",
                file=sys.stderr,
            )
        yield


def check_same_run(output, old, new, remedy=""):
    """Raises a `ValueError` that lists the settings that differ.

    Args:
        output: The run's directory.
        old: The run's settings, a dict.
        new: The settings of the command, a dict.
        remedy: A further remedy, if there is one.
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


def remedy_for_more_steps(output, settings):
    """Returns how to train on from a finished run, an empty text for other runs."""
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
