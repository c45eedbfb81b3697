"""Results that are there already, and whether they are of the run that is asked for.

A result is kept with all that decided it: the settings, and fingerprints of the preset
and of every split's examples. Nothing is made anew over one that differs.
"""

import hashlib
import json
import os

from keras_corrupt.files.whole import write_whole
from keras_corrupt.presets.directory import content_hash


def read(path, new):
    """Returns the result of a run, or `None` if it has not been made.

    Args:
        path: The run's JSON file, a `Path`.
        new: The settings that decide the run, as JSON holds them.

    Raises:
        ValueError: The file is damaged, or of a run that something else decided.
    """
    if not os.path.isfile(path):  # also where a name is too long
        return None
    try:
        result = json.loads(path.read_text())
        old = result["settings"]
        _ = float(result["score"]), old["fingerprints"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path} is damaged. Delete it, and the same command makes it anew."
        ) from error
    names = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    if not names:
        return result
    if names == ["fingerprints"]:
        old, new = old["fingerprints"], new["fingerprints"]
        changed = [name for name in new if old.get(name) != new[name]]
        why = f"is the result of other examples than {' and '.join(changed)} has now"
    else:
        differences = [
            f"{name}: was {old.get(name)!r}, asked {new.get(name)!r}"
            for name in names
            if name != "fingerprints"
        ]
        why = f"is the result of other settings ({'; '.join(differences)})"
    raise ValueError(
        f"{path} {why}. Choose another `output`, go back to what it was made with, or "
        f"delete {path.parent}."
    )


def keep(path, result, save_best):
    """Keeps the result of a run, and its model if no run of the folder scored as much.

    The JSON file comes last, because it says that the run is done.

    Args:
        path: The run's JSON file, a `Path`: `seed-0.json` or so.
        result: What it holds; `score` among it.
        save_best: Function of the folder that saves the model and its predictions.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    others = [json.loads(p.read_text()) for p in path.parent.glob("seed-*.json")]
    if all(result["score"] > other["score"] for other in others):
        save_best(path.parent)
    write_whole(path, json.dumps(result, indent=2) + "\n")


def fingerprint(preset):
    """Returns what tells a preset from others: its name, and a hash of its files."""
    return f"{os.path.basename(os.path.normpath(preset))} {content_hash(preset)}"


def settings_fingerprint(settings):
    """Returns a hash of settings, as JSON holds them."""
    text = json.dumps(settings, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def file_fingerprint(path):
    """Returns a hash of a file's content."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]
