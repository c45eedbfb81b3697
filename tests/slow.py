"""Writes slow.txt: the tests that take over three seconds with all their parameters.

    pytest -n auto -m "" --junitxml times.xml
    python -m tests.slow times.xml

A file whose tests share what takes long stands there as a whole, by hand.
"""

import collections
import sys
from pathlib import Path
from xml.etree import ElementTree

from tests.lists import SLOW

ROOT = Path(__file__).parents[1]
LIST = Path(__file__).with_name("slow.txt")
#: Seconds of a test, with all its parameters, on one of two busy cores.
LONGEST = 3.0


def identifier(case):
    """Returns a test case's node identifier without parameters."""
    *parts, name = *case.get("classname").split("."), case.get("name").split("[")[0]
    for i in range(len(parts), 0, -1):
        path = "/".join(parts[:i]) + ".py"
        if (ROOT / path).is_file():
            return "::".join([path, *parts[i:], name])
    raise ValueError(f"{case.get('classname')} is of no file below {ROOT}.")


def main(paths):
    """Writes slow.txt from JUnit files of pytest."""
    files = {name for name in SLOW if "::" not in name}
    seconds = collections.Counter()
    for path in paths:
        here = collections.Counter()
        for case in ElementTree.parse(path).iter("testcase"):
            name, time = identifier(case), float(case.get("time"))
            name = file if (file := name.split("::")[0]) in files else name
            here[name] += time
        seconds |= here  # the longer of two backends' times
    long = files | {name for name, time in seconds.items() if time > LONGEST}
    LIST.write_text("".join(f"{name} {seconds[name]:.1f}\n" for name in sorted(long)))


if __name__ == "__main__":
    main(sys.argv[1:])
