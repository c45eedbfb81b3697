"""`keras-corrupt doctor`: what is installed, and what it computes on."""

import importlib
import platform
import re
import sys
from importlib import metadata

import tyro

from keras_corrupt.commands.frame import command
from keras_corrupt.devices.cpus import available_cpus

PACKAGE = "keras-corrupt"
#: Packages whose versions matter most where something goes wrong.
_NAMED = ("keras", "tensorflow", "tensorflow-text", "jax", "numpy", "tokenizers")


def doctor() -> None:
    """Prints versions, backend, devices, and each extra with what it would add."""
    lines = {
        PACKAGE: f"{_version(PACKAGE)}, Python {platform.python_version()} "
        f"({sys.executable}), {platform.system()} {platform.machine()}",
        "packages": ", ".join(f"{name} {_version(name)}" for name in _NAMED),
        "backend": _backend(),
        "devices": _devices(),
    }
    for name, text in lines.items():
        print(f"{name + ':':15}{text}")
    print(f"\nextras, such as pip install '{PACKAGE}[jax]':")
    try:
        requirements = metadata.requires(PACKAGE)
    except metadata.PackageNotFoundError:
        print("  not known: the package is not installed. Run pip install -e .")
        return
    for extra, packages in sorted(extras(requirements).items()):
        found = [f"{name} {_version(name)}" for name in packages]
        missing = any(_version(name) == "missing" for name in packages)
        print(f"  {extra:12} {'-' if missing else 'installed':10} {', '.join(found)}")


def extras(requirements):
    """Returns the names of the packages that each extra brings.

    Args:
        requirements: Those of a package, as `importlib.metadata` has them.

    >>> extras(["numpy>=1", "jax>=0.4; extra == 'jax'", 'a[b]<2; extra == "c"'])
    {'jax': ['jax'], 'c': ['a']}
    """
    found = {}
    for requirement in requirements:
        if extra := re.search(r"extra == ['\"]([\w-]+)['\"]", requirement):
            name = re.match(r"[\w.-]+", requirement)[0]
            found.setdefault(extra[1], []).append(name)
    return found


def _version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "missing"


def _backend():
    try:
        import keras

        name = keras.backend.backend()
        importlib.import_module(name)
    except (ImportError, OSError, ValueError) as error:  # of a library that is broken
        return f"does not load: {error}"
    return f"{name}; the environment variable KERAS_BACKEND chooses another"


def _devices():
    try:
        from keras_corrupt.devices.accelerators import accelerators

        found = accelerators()
    except (ImportError, RuntimeError, ValueError) as error:
        return f"do not show: {error}"
    return ", ".join([*found, f"{available_cpus()} CPU cores"])


@command("Run the same command again.")
def main(prog=f"{PACKAGE} doctor"):
    """Runs the command line of `prog`, the name of the program."""
    tyro.cli(doctor, prog=prog)


if __name__ == "__main__":
    main()
