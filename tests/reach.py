"""Which slow tests are about a change.

`full_run.txt` names the commit at which all tests passed, and the packages that they
ran with; `.ci/run --everything` writes it. Since then only some files have changed. A
change of a folder of keras_corrupt reaches the slow tests in the folder of this name;
`pytest --reached` leaves out the others. Where git does not know the commit, or
packages differ, a change reaches all. `--reached` takes the shortest of the tests that
a change reaches, as many as end in `BUDGET`. The fast tests, and the next run of
everything, tell what the change does to the rest.
"""

import functools
import importlib.metadata
import itertools
import subprocess
import sys
from pathlib import Path

from tests.lists import SLOW
from tests.test_build_file import PACKAGE, ROOT

FULL_RUN = Path(__file__).with_name("full_run.txt")
#: Seconds of one core, so that `.ci/run` may end within 25 minutes on two.
BUDGET = 120
PACKAGES = ("jax", "jaxlib", "keras", "numpy", "tensorflow", "tf-models-official")
#: Folder or file of tests -> the code that they are about, if its name is another.
SUBJECTS = {
    "fidelity": ("models",),
    "hostile": ("files", "presets", "tokenizers"),
    "integration": ("recipes", "training"),
    "test_colab.py": ("colab",),
}


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


@functools.cache
def reached():
    """Returns the names in slow.txt that `--reached` takes."""
    changed = changed_files()
    names = [name for name in SLOW if is_reached(name.split("::")[0], changed)]
    names.sort(key=SLOW.get)
    ends = itertools.accumulate(SLOW[name] for name in names)
    return frozenset(
        name for name, end in zip(names, ends, strict=True) if end <= BUDGET
    )


def is_reached(path, changed):
    """Returns whether changes reach the tests of a file.

    Args:
        path: The file, from the root of the repository.
        changed: The paths that changed, or None if all may have.
    """
    return changed is None or any(_reaches(file, path) for file in changed)


def _reaches(file, path):
    *folders, name = file.split("/")
    if file in (path, "pyproject.toml", "setup.py", "tests/conftest.py"):
        return True
    if folders[:2] == ["tests", "fixtures"]:
        return True
    if folders[:1] == ["tests"]:  # What the tests below a folder share.
        shared = len(folders) > 1 and not name.startswith("test_")
        return shared and path.startswith("/".join(folders) + "/")
    if folders[:1] == [PACKAGE]:
        return folders == [PACKAGE] or folders[1] in subjects(path)
    return bool(folders) and folders[0] in subjects(path)


def subjects(path):
    """Returns the folders of code that the tests of a file are about."""
    folder = path.split("/")[1]
    return SUBJECTS.get(folder, (folder,))


def main():
    """Writes full_run.txt for the commit that is checked out."""
    (commit,) = git("rev-parse", "HEAD")
    FULL_RUN.write_text("\n".join([commit, *versions()]) + "\n")


if __name__ == "__main__":
    sys.exit(main())
