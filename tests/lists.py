"""Lists of tests.

`slow.txt` names the tests that take over three seconds with all their parameters, and
how long they take on two cores (`tests/slow.py` writes it). `on_jax.txt` names those
that JAX could fail and TensorFlow pass: numbers, gradients, draws, devices, files, and
a run of each kind. A name is of a folder, a file, a class, a test, or a test with its
parameters. A listed test has the list's name as its marker.
"""

import re
from pathlib import Path

HERE = Path(__file__).parent
#: Name -> seconds.
SLOW = {
    name: float(seconds)
    for name, seconds in map(str.split, (HERE / "slow.txt").read_text().splitlines())
}
LISTS = {
    "slow": frozenset(SLOW),
    "on_jax": frozenset((HERE / "on_jax.txt").read_text().splitlines()),
}


def is_in(listed, nodeid):
    """Returns whether a name of a list is a test, or holds it."""
    ends = (match.start() for match in re.finditer(r"/|::|\[|$", nodeid))
    return not listed.isdisjoint({nodeid[:end] for end in ends})


def is_of(listed, path):
    """Returns whether a list has a test of a file; `path` is from the root."""
    return is_in(listed, path) or any(name.startswith(f"{path}::") for name in listed)


def check_parameters(nodeids):
    """Raises a `ValueError` where a listed test has other parameters than the list."""
    nodeids = set(nodeids)
    tests = {nodeid.split("[")[0] for nodeid in nodeids}
    for name in frozenset().union(*LISTS.values()) - nodeids:
        if "[" in name and name.split("[")[0] in tests:
            raise ValueError(f"No test is {name}; mend the list that names it.")
