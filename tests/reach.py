"""Which slow tests a change can reach.

`full_run.txt` names the commit at which all tests passed, and the packages that they
ran with; `.ci/run --everything` writes it. Since then only some files have changed. A
change of a room of keras_corrupt reaches the tests of this room and of the rooms that
import from it. `pytest --reached` leaves out the slow tests that no change
reaches. It leaves out none where git does not know the commit, or packages differ.
"""

import ast
import functools
import importlib.metadata
import subprocess
import sys
from pathlib import Path

from tests.test_build_file import PACKAGE, ROOMS, ROOT, imports_of, strings

FULL_RUN = Path(__file__).with_name("full_run.txt")
PACKAGES = ("jax", "jaxlib", "keras", "numpy", "tensorflow", "tf-models-official")
EVERYTHING = frozenset(ROOMS)


def versions():
    """Returns the versions of the packages that compute, as lines."""
    return [f"{name}=={importlib.metadata.version(name)}" for name in PACKAGES]


def git(*arguments):
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=True
    ).stdout.splitlines()


@functools.cache
def changed_files():
    """Returns the paths that changed since the last full run; None if all may have."""
    try:
        commit, *packages = FULL_RUN.read_text().splitlines()
        if packages != versions():
            return None
        new = git("ls-files", "--others", "--exclude-standard")
        return frozenset([*git("diff", "--name-only", commit), *new])
    except (OSError, ValueError, subprocess.CalledProcessError):
        return None


def named_in(source):
    """Returns the rooms that a file imports, by a statement or by a string."""
    modules = imports_of(source) | {
        text.removeprefix(f"{PACKAGE}.")
        for text in strings(ast.parse(source))
        if text.startswith(f"{PACKAGE}.")
    }
    return EVERYTHING if "" in modules else {m.split(".")[0] for m in modules}


@functools.cache
def needed_by(room):
    """Returns the rooms that a room imports from, its commands included."""
    files = (ROOT / PACKAGE / room).rglob("*.py")
    return set().union(*(named_in(file.read_text()) for file in files)) & EVERYTHING


@functools.cache
def rooms_of(path):
    """Returns the rooms that the tests of a file depend on.

    Args:
        path: The file, from the root of the repository.
    """
    folder = path.split("/")[1]
    if folder not in ROOMS:  # It runs commands, recipes or notebooks.
        return EVERYTHING
    # What the tests of a folder share may stand in any of its files.
    files = (ROOT / "tests" / folder).rglob("*.py")
    rooms = {folder}.union(*(named_in(file.read_text()) for file in files))
    found, new = set(), rooms & EVERYTHING
    while new:
        found |= new
        new = set().union(*map(needed_by, new)) - found
    return found


def is_reached(path, changed):
    """Returns whether changes can reach the tests of a file.

    Args:
        path: The file, from the root of the repository.
        changed: The paths that changed, or None if all may have.
    """
    return changed is None or any(_reaches(file, path) for file in changed)


def _reaches(file, path):
    *folders, name = file.split("/")
    top = folders[0] if folders else ""
    if file in (path, "pyproject.toml", "setup.py"):
        return True
    if top == PACKAGE:
        return folders == [PACKAGE] or folders[1] in rooms_of(path)
    if top == "tests":  # Other tests import what is not a test itself.
        return not name.startswith("test_") and name != FULL_RUN.name
    return top in ("recipes", "colab") and rooms_of(path) == EVERYTHING


def main():
    """Writes full_run.txt for the commit that is checked out."""
    (commit,) = git("rev-parse", "HEAD")
    FULL_RUN.write_text("\n".join([commit, *versions()]) + "\n")


if __name__ == "__main__":
    sys.exit(main())
