"""`keras-corrupt doctor`: the installed packages, and the devices they compute on."""

import importlib
import platform
import re
import sys
from importlib import metadata

import tyro
from packaging.requirements import Requirement

from keras_corrupt.commands.frame import command
from keras_corrupt.devices.cpus import available_cpus

PACKAGE = "keras-corrupt"
#: Packages whose versions matter most where something goes wrong.
_NAMED = ("keras", "tensorflow", "tensorflow-text", "jax", "numpy", "tokenizers")


def doctor() -> None:
    """Prints versions, backend, devices, and each extra with its packages."""
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
    for extra, packages in extras(requirements).items():
        states = [_state(package) for package in packages]
        installed = all(ready for ready, _ in states)
        texts = ", ".join(text for _, text in states)
        print(f"  {extra:12} {'installed' if installed else '-':10} {texts}")


def extras(requirements):
    """Returns each extra's requirements for this machine, `packaging`'s.

    Args:
        requirements: A package's requirements, as `importlib.metadata` has them.

    >>> [*extras(["numpy>=1", "jax>=0.4; extra == 'jax'", 'a[b]<2; extra == "c"'])]
    ['c', 'jax']
    """
    requirements_of = {}
    for requirement in map(Requirement, requirements):
        if extra := re.search(r'extra == "([^"]+)"', str(requirement.marker)):
            if requirement.marker.evaluate({"extra": extra[1]}):
                requirements_of.setdefault(extra[1], []).append(requirement)
    return dict(sorted(requirements_of.items()))


def _state(requirement):
    """Returns whether a requirement is met, and a text about it."""
    version = _version(requirement.name)
    if version == "missing":
        return False, f"{requirement.name} {version}"
    if not requirement.specifier.contains(version, prereleases=True):
        return False, f"{requirement.name} {version}, not {requirement.specifier}"
    return True, f"{requirement.name} {version}"


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

        names = accelerators()
    except (ImportError, RuntimeError, ValueError) as error:
        return f"do not show: {error}"
    return ", ".join([*names, f"{available_cpus()} CPU cores"])


@command("Run the same command again.")
def main(prog=f"{PACKAGE} doctor"):
    """Runs the command line of `prog`, the name of the program."""
    tyro.cli(doctor, prog=prog)


if __name__ == "__main__":
    main()
