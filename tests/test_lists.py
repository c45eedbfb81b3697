import re

import pytest

from tests.lists import LISTS, check_parameters, is_in, is_of
from tests.test_build_file import ROOT


@pytest.mark.parametrize(
    "line, nodeid, held",
    [
        ("tests/a", "tests/a/b/test_c.py::test_d", True),
        ("tests/a", "tests/ab/test_c.py::test_d", False),
        ("tests/test_c.py", "tests/test_c.py::TestE::test_d[1/2]", True),
        ("tests/test_c.py::TestE", "tests/test_c.py::TestE::test_d", True),
        ("tests/test_c.py::test_d", "tests/test_c.py::test_d[x]", True),
        ("tests/test_c.py::test_d", "tests/test_c.py::test_db", False),
        ("tests/test_c.py::test_d[x]", "tests/test_c.py::test_d[x]", True),
        ("tests/test_c.py::test_d[x]", "tests/test_c.py::test_d[y]", False),
    ],
)
def test_a_line_holds_what_begins_with_it(line, nodeid, held):
    assert is_in({line}, nodeid) is held
    assert not held or is_of({line}, nodeid.split("::")[0])


def test_files_without_a_listed_test_are_known():
    assert not is_of({"tests/a/test_c.py::test_d"}, "tests/a/test_d.py")


def test_parameters_that_no_test_has_are_an_error():
    name = next(name for name in LISTS["on_jax"] if "[" in name)
    test = name.split("[")[0]
    listed = [name for name in set().union(*LISTS.values()) if name.startswith(test)]
    check_parameters([*listed, f"{test}[other]", "tests/test_lists.py::test_a"])
    with pytest.raises(ValueError, match="No test is .*; mend the list"):
        check_parameters([f"{test}[other]"])


@pytest.mark.parametrize("name", LISTS)
def test_what_is_listed_exists(name):
    """A test that was renamed would be of no list."""
    for line in LISTS[name]:
        path, *names = line.split("[")[0].split("::")
        assert (ROOT / path).exists(), line
        for inner in names:
            text = (ROOT / path).read_text()
            assert re.search(rf"^ *(def|class) {inner}\b", text, re.M), line
