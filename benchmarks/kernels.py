"""Counts the kernels of a program that XLA has compiled, from its text."""

import collections
import re

#: Operations that start no kernel.
FREE = (
    *("parameter", "constant", "tuple", "get-tuple-element", "bitcast"),
    *("after-all", "opt-barrier", "fusion-done", "copy-done"),
)


def kernels_of_a_step(text):
    """Counts what a compiled program of several updates starts for each.

    Args:
        text: The program as XLA prints it.

    Returns:
        A `collections.Counter` of the kernels' kinds, by the names that XLA gives them.
    """
    computations = computations_of(text)
    loops = {
        called
        for operations in computations.values()
        for _, operation, rest in operations
        if operation == "while"
        for called in re.findall(r"body=%?([\w.\-]+)", rest)
    }
    counts = [kernels(computations, loop) for loop in loops]
    return max(counts, key=collections.Counter.total)


def computations_of(text):
    """Returns name of a computation -> its operations: name, kind and what follows."""
    computations, current = {}, None
    for line in re.sub(r"/\*.*?\*/", "", text).splitlines():
        if begins := re.match(r"(?:ENTRY )?%?([\w.\-]+) \(.*\{$", line):
            current = computations.setdefault(begins[1], [])
        elif operation := re.match(
            r"\s+(?:ROOT )?%?([\w.\-]+) = (?:\([^=]*?\)|\S+) ([\w\-]+)\((.*)", line
        ):
            current.append(operation.groups())
    return computations


def kernels(computations, name):
    """Counts the kernels of a computation and of all computations that it calls."""
    counts = collections.Counter()
    for own_name, operation, rest in computations[name]:
        if operation in ("while", "call", "conditional"):
            for called in re.findall(r"(?:body|to_apply)=%?([\w.\-]+)", rest):
                counts += kernels(computations, called)
        elif operation == "fusion":
            counts[re.sub(r"[.\d]+$", "", own_name)] += 1
        elif operation not in FREE:
            counts[operation] += 1
    return counts
