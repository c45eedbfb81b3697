"""Keeps BUILD in step with the tree; `python tests/test_build_file.py` rewrites it."""

import ast
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
REMEDY = "run: python tests/test_build_file.py"

HEADER = '''\
"""Targets for Bazel: the library, a binary for each recipe, a test for each file.

Written by `python tests/test_build_file.py`. The folders of keras_corrupt import one
another freely, so depend on :keras_corrupt, never on a folder. Third-party packages
come from the environment of the `python3` on the path: see MODULE.bazel.
"""

load("@rules_python//python:defs.bzl", "py_binary", "py_library", "py_test")
'''

LIBRARY = """
py_library(
    name = "{name}",
    srcs = {srcs},
)
"""

ROOT_LIBRARY = """
py_library(
    name = "keras_corrupt",
    srcs = {srcs},
    imports = ["."],
    visibility = ["//visibility:public"],
    deps = {deps},
)
"""

RECIPES = """
RECIPES = {paths}

[
    py_binary(
        name = path.removesuffix(".py"),
        srcs = [path],
        main = path,
        deps = [":keras_corrupt"],
    )
    for path in RECIPES
]
"""

TESTS = """
py_library(
    name = "test_support",
    testonly = True,
    srcs = {support},
)

TESTS = {paths}

[
    py_test(
        name = path.removesuffix(".py"),
        srcs = [
            "tests/run_pytest.py",
            path,
        ],
        args = [path],
        data = RECIPES + ["pyproject.toml", "setup.py"] + glob([
            "colab/*.ipynb",
            "tests/fixtures/*.npz",
        ]),
        main = "tests/run_pytest.py",
        deps = [
            ":keras_corrupt",
            ":test_support",
        ],
    )
    for path in TESTS
]
"""


def python_files(folder):
    return sorted(p.relative_to(ROOT).as_posix() for p in ROOT.glob(f"{folder}/*.py"))


def starlark_list(items):
    lines = "".join(f'\n        "{item}",' for item in items)
    return f"[{lines}\n    ]" if items else "[]"


def starlark_constant(items):
    return starlark_list(items).replace("\n    ", "\n")


def render():
    """Writes BUILD's text from what is in the tree."""
    folders = sorted(
        p.name
        for p in (ROOT / "keras_corrupt").iterdir()
        if python_files(f"keras_corrupt/{p.name}/**")
    )
    text = HEADER + ROOT_LIBRARY.format(
        srcs=starlark_list(python_files("keras_corrupt")),
        deps=starlark_list([f":{folder}" for folder in folders]),
    )
    for folder in folders:
        srcs = starlark_list(python_files(f"keras_corrupt/{folder}/**"))
        text += LIBRARY.format(name=folder, srcs=srcs)
    text += RECIPES.format(paths=starlark_constant(python_files("recipes/**")))
    files = python_files("tests/**")
    tests = [path for path in files if Path(path).name.startswith("test_")]
    support = [path for path in files if path not in tests]
    text += TESTS.format(support=starlark_list(support), paths=starlark_constant(tests))
    return text


def strings(node):
    return {
        n.value
        for n in ast.walk(node)
        if isinstance(n, ast.Constant) and isinstance(n.value, str)
    }


@pytest.fixture(scope="module")
def build():
    # A sandbox holds only what BUILD lists, so there is nothing to compare it with.
    if "TEST_SRCDIR" in os.environ:
        pytest.skip("needs the whole tree, not Bazel's sandbox")
    return ast.parse((ROOT / "BUILD").read_text())


def tree_files():
    found = []
    for top in ("keras_corrupt", "recipes", "tests"):
        for folder, _, names in os.walk(ROOT / top):
            relative = Path(folder).relative_to(ROOT)
            found += [f"{relative}/{n}" for n in names if n.endswith(".py")]
    return set(found)


def test_every_python_file_is_listed_and_exists(build):
    listed = {s for s in strings(build) if s.endswith(".py") and "/" in s}
    missing, gone = tree_files() - listed, listed - tree_files()
    assert not missing, f"not in BUILD: {sorted(missing)}; {REMEDY}"
    assert not gone, f"in BUILD but not in the tree: {sorted(gone)}; {REMEDY}"


def test_every_test_file_is_a_test_target(build):
    (tests,) = (
        node.value
        for node in build.body
        if isinstance(node, ast.Assign) and node.targets[0].id == "TESTS"
    )
    expected = {f for f in tree_files() if Path(f).name.startswith("test_")}
    assert strings(tests) == expected, REMEDY


def test_the_library_holds_every_folder_and_each_file_once(build):
    libraries = {}
    for node in build.body:
        call = getattr(node, "value", None)
        if isinstance(call, ast.Call) and call.func.id == "py_library":
            arguments = {k.arg: ast.literal_eval(k.value) for k in call.keywords}
            libraries[arguments.pop("name")] = arguments
    del libraries["test_support"]
    whole = libraries["keras_corrupt"]
    assert sorted(whole["deps"]) == sorted(
        f":{name}" for name in libraries if name != "keras_corrupt"
    )
    srcs = [path for library in libraries.values() for path in library["srcs"]]
    package = [f for f in tree_files() if f.startswith("keras_corrupt/")]
    assert sorted(srcs) == sorted(package), REMEDY


if __name__ == "__main__":
    (ROOT / "BUILD").write_text(render())
