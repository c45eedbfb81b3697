"""Lists of tests.

`slow.txt` names the tests that take over three seconds (`tests/slow.py` writes it), and
`on_jax.txt` those that JAX could fail and TensorFlow pass: numbers, gradients, draws,
devices, files, and a run of each kind. A line is a folder, a file, a class, a test, or
a test with its parameters. A listed test has the list's name as its marker.
"""

import re
from pathlib import Path

LISTS = {
    path.stem: frozenset(path.read_text().split())
    for path in map(Path(__file__).with_name, ("slow.txt", "on_jax.txt"))
}


def is_in(listed, nodeid):
    """Returns whether a line of a list is a test, or holds it."""
    ends = (match.start() for match in re.finditer(r"/|::|\[|$", nodeid))
    return not listed.isdisjoint({nodeid[:end] for end in ends})


def is_of(listed, path):
    """Returns whether a list has a test of a file; `path` is from the root."""
    return is_in(listed, path) or any(line.startswith(f"{path}::") for line in listed)
