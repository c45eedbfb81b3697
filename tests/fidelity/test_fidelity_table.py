"""docs/fidelity/ names code, options and tests that exist, and every fidelity test."""

import ast
import os
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@cache
def tree(path):
    return ast.parse((ROOT / path).read_text())


def names(path):
    """What a file defines at its top, and as `Class.name` in its classes."""
    found = set()

    def add(body, prefix=""):
        for node in body:
            targets = getattr(node, "targets", [getattr(node, "target", node)])
            for target in targets:
                name = getattr(target, "id", None) or getattr(target, "name", None)
                if name:
                    found.add(prefix + name)
            if isinstance(node, ast.ClassDef):
                add(node.body, f"{prefix}{node.name}.")

    add(tree(path).body)
    return found


def parameters(path):
    """Arguments and annotated fields that have a name and a default or a type."""
    nodes = list(ast.walk(tree(path)))
    arguments = {node.arg for node in nodes if isinstance(node, ast.arg)}
    fields = [node.target for node in nodes if isinstance(node, ast.AnnAssign)]
    return arguments | {field.id for field in fields if isinstance(field, ast.Name)}


@pytest.fixture(scope="module")
def text():
    if "TEST_SRCDIR" in os.environ:
        pytest.skip("needs the whole tree, not Bazel's sandbox")
    return "".join(page.read_text() for page in (ROOT / "docs/fidelity").glob("*.md"))


@pytest.fixture
def rows(text):
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    return [row for row in cells if row[0] != "Detail"]


def references(cell):
    return re.findall(r"`([\w/.]+\.py)::([\w.]+)`", cell)


def test_every_row_names_code_and_tests_that_exist(rows):
    assert len(rows) > 40
    for row in rows:
        assert len(row) == 4, row
        code, tests = references(row[2]), references(row[3])
        assert code and tests, f"no code or no test: {row[0]}"
        # the cells hold nothing but references
        for cell, found in ((row[2], code), (row[3], tests)):
            assert cell.count("`") == 2 * len(found), f"not path.py::name: {cell}"
        assert all(path.startswith(("keras_corrupt/", "recipes/")) for path, _ in code)
        assert all(path.startswith("tests/") for path, _ in tests)


def test_every_reference_exists(text):
    for path, name in references(text):
        assert (ROOT / path).is_file(), f"{path} is not there"
        assert name in names(path), f"{path} does not define {name}"
        if path.startswith("tests/"):
            assert name.rsplit(".", 1)[-1].startswith("test_"), name


def test_every_option_is_an_argument(text):
    files = [p.relative_to(ROOT) for p in (ROOT / "keras_corrupt").rglob("*.py")]
    known = set().union(*map(parameters, files))
    options = re.findall(r"`(\w+)=[^`]+`", text)
    assert options and set(options) <= known, set(options) - known


def test_every_fidelity_test_has_a_row(rows):
    listed = {name for row in rows for path, name in references(row[3])}
    for path in Path(__file__).parent.glob("test_*.py"):
        if path != Path(__file__):
            tests = {n for n in names(path) if n.startswith("test_")}
            assert tests <= listed, f"not in docs/fidelity: {sorted(tests - listed)}"
