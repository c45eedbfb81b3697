"""Which tests are slow: those in slow.txt, that take over three seconds.

    pytest -n auto -m "" --junitxml times.xml
    python tests/slow.py times.xml

writes slow.txt anew. With the times of both backends a test is slow if it is on one.
"""

import sys
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
LIST = Path(__file__).with_name("slow.txt")
#: Seconds on two cores.
LONGEST = 3.0


def slow_tests():
    """Returns the tests of slow.txt: node identifiers without parameters."""
    return set(LIST.read_text().split())


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
    found = {
        identifier(case)
        for path in paths
        for case in ElementTree.parse(path).iter("testcase")
        if float(case.get("time")) > LONGEST
    }
    LIST.write_text("".join(f"{name}\n" for name in sorted(found)))


if __name__ == "__main__":
    main(sys.argv[1:])
