"""Which tests are slow: those in slow.txt, that take over three seconds.

    pytest -n auto -m "" --junitxml times.xml
    python -m tests.slow times.xml

writes slow.txt anew. A file whose tests share what takes long stands there as a whole,
by hand.
"""

import sys
from pathlib import Path
from xml.etree import ElementTree

from tests.lists import LISTS

ROOT = Path(__file__).parents[1]
LIST = Path(__file__).with_name("slow.txt")
#: Seconds on two cores.
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
    found = {
        identifier(case)
        for path in paths
        for case in ElementTree.parse(path).iter("testcase")
        if float(case.get("time")) > LONGEST
    }
    files = {name for name in LISTS["slow"] if "::" not in name}
    found = {name for name in found if name.split("::")[0] not in files}
    LIST.write_text("".join(f"{name}\n" for name in sorted(found | files)))


if __name__ == "__main__":
    main(sys.argv[1:])
