"""Keeps imports in their order, and BUILD in step with the tree.

`python tests/test_build_file.py` rewrites BUILD.
"""

import ast
import functools
import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = "keras_corrupt"

#: The folders of keras_corrupt from the bottom to the top. A folder imports from those
#: that stand before it, and from no other.
ROOMS = (
    "commands",
    "files",
    "devices",
    "tokenizers",
    "tasks",
    "encoders",
    "presets",
    "heads",
    "corruption",
    "objectives",
    "data",
    "models",
    "scoring",
    "training",
    "downstream",
    "multitask",
    "cross_view",
    "convert",
    "evaluation",
    "cpu_kernels",
    "gpu_kernels",
    "cli",
)

#: A system imports from no other system, and what systems share imports from none, but
#: for this one, which is the other one with a term of its own.
EXTENSIONS = {"adversarial_electra.py": "electra"}

REMEDY = "run: python tests/test_build_file.py"

HEADER = '''\
"""Targets for Bazel: the library, a binary for each recipe, a test for each file.

Written by `python tests/test_build_file.py`. Each folder of keras_corrupt depends on
the folders that it imports from, all of them below it in that file's `ROOMS`. Others
depend on :keras_corrupt, which is all folders. Third-party packages come from the
environment of the `python3` on the path: see MODULE.bazel.
"""

load("@rules_python//python:defs.bzl", "py_binary", "py_library", "py_test")
'''

LIBRARY = """
py_library(
    name = "{name}",
    srcs = glob(["keras_corrupt/{name}/**/*.py"]),{deps}
)
"""

ROOT_LIBRARY = """
py_library(
    name = "keras_corrupt",
    srcs = glob(["keras_corrupt/*.py"]),
    imports = ["."],
    visibility = ["//visibility:public"],
    deps = {deps},
)
"""

RECIPES_AND_TESTS = """
RECIPES = glob(["recipes/*.py"])

[
    py_binary(
        name = path.removesuffix(".py"),
        srcs = [path],
        main = path,
        deps = [":keras_corrupt"],
    )
    for path in RECIPES
]

TESTS = glob(["tests/**/test_*.py"])

py_library(
    name = "test_support",
    testonly = True,
    srcs = glob(
        ["tests/**/*.py"],
        exclude = TESTS,
    ),
)

[
    py_test(
        name = path.removesuffix(".py"),
        srcs = [
            "tests/run_pytest.py",
            path,
        ],
        args = [path],
        data = RECIPES + ["pyproject.toml", "setup.py"] + glob([
            "*.md",
            "colab/*.ipynb",
            "docs/**",
            "tests/fixtures/**",
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


def folders(parent):
    """Returns the names of the folders in `parent` that hold Python files."""
    names = (path.name for path in (ROOT / parent).iterdir())
    return sorted(name for name in names if python_files(f"{parent}/{name}/**"))


def imports_of(source):
    """Returns what a file imports of keras_corrupt, wherever it does so.

    `from keras_corrupt.models import electra` imports `models.electra`, `from
    keras_corrupt.models import Electra` imports `models`, and `import keras_corrupt`
    imports `""`, the package itself.
    """
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "relative imports are not looked at"
            for alias in node.names:
                path = ROOT / f"{node.module}.{alias.name}".replace(".", "/")
                is_module = path.is_dir() or path.with_suffix(".py").is_file()
                found.add(f"{node.module}.{alias.name}" if is_module else node.module)
    return {
        name.removeprefix(PACKAGE).removeprefix(".")
        for name in found
        if name.split(".")[0] == PACKAGE
    }


@functools.cache
def imports():
    """Returns the (file, module) of all imports of keras_corrupt in its folders.

    A `__main__.py` is a command, which stands above all folders, as a recipe does.
    """
    return {
        (path.removeprefix(f"{PACKAGE}/"), module)
        for path in python_files(f"{PACKAGE}/*/**")
        if not path.endswith("__main__.py")
        for module in imports_of((ROOT / path).read_text())
    }


def objection(path, module):
    """Says why the file `path` must not import `module`; `None` if it may."""
    room, file, *_ = path.split("/")
    imported_room, imported_folder, *_ = [*module.split("."), ""]
    if imported_room not in ROOMS:
        return "import from its folders"
    if ROOMS.index(imported_room) > ROOMS.index(room):
        return (
            f"{imported_room} stands above {room}: move what is needed down, or pass "
            "it as an argument"
        )
    if room == imported_room == "models" and path != "models/__init__.py":
        if imported_folder in systems() and EXTENSIONS.get(file) != imported_folder:
            return f"{imported_folder} is another system: move what is shared"
    return None


@functools.cache
def systems():
    """Returns the files of models/ that define a system: `__init__.py` names them."""
    modules = imports_of((ROOT / PACKAGE / "models" / "__init__.py").read_text())
    names = {module.removeprefix("models.") for module in modules}
    return {name for name in names if "." not in name} - {"pretrainer"}


def dependencies(room):
    """Returns the rooms below `room` that it imports from."""
    imported = {m.split(".")[0] for path, m in imports() if path.startswith(f"{room}/")}
    return sorted(imported & {*ROOMS[: ROOMS.index(room)]})


def render():
    """Writes BUILD's text from what is in the tree."""
    rooms = folders(PACKAGE)
    text = HEADER + ROOT_LIBRARY.format(
        deps=starlark_list([f":{room}" for room in rooms])
    )
    for room in rooms:
        deps = starlark_list([f":{name}" for name in dependencies(room)])
        deps = f"\n    deps = {deps}," if dependencies(room) else ""
        text += LIBRARY.format(name=room, deps=deps)
    return text + RECIPES_AND_TESTS


def test_build_is_what_the_tree_gives():
    # A sandbox holds only what BUILD names, so there is nothing to compare it with.
    if "TEST_SRCDIR" in os.environ:
        pytest.skip("needs the whole tree, not Bazel's sandbox")
    assert (ROOT / "BUILD").read_text() == render(), REMEDY


@pytest.mark.parametrize("top", ["keras_corrupt", "recipes", "tests"])
def test_the_globs_of_build_find_every_python_file(top):
    globs = re.findall(r'"([^"]+\.py)"', (ROOT / "BUILD").read_text())
    found = [path for pattern in globs for path in ROOT.glob(pattern)]
    assert not {*ROOT.glob(f"{top}/**/*.py")} - {*found}, REMEDY


def test_every_folder_has_its_place_in_the_order():
    assert sorted(ROOMS) == folders(PACKAGE), "put each folder into ROOMS, once"


def test_imports_run_one_way():
    broken = [
        f"{path} imports {PACKAGE}.{module}: {objection(path, module)}."
        for path, module in sorted(imports())
        if objection(path, module)
    ]
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize(
    "path, module, reason",
    [
        ("tasks/glue/glue.py", "tasks.metrics", None),
        ("tasks/glue/glue.py", "downstream.model", "downstream stands above tasks"),
        ("evaluation/similarity.py", "cpu_kernels", "cpu_kernels stands above"),
        ("downstream/model.py", "models.electra", None),
        ("models/teams.py", "models.teams_fine_tuning", None),
        ("models/teams.py", "models.pretrainer", None),
        ("models/teams.py", "models.electra", "electra is another system"),
        ("models/adversarial_electra.py", "models.electra", None),
        ("models/adversarial_electra.py", "models.teams", "teams is another system"),
        ("models/pretrainer.py", "models.electra", "electra is another system"),
        ("models/__init__.py", "models.electra", None),
        ("training/pretraining.py", "", "import from its folders"),
    ],
)
def test_what_may_be_imported(path, module, reason):
    found = objection(path, module)
    assert found is None if reason is None else found.startswith(reason)


def test_imports_are_found_wherever_they_stand():
    source = """
import keras, keras_corrupt.data.records as records
from keras_corrupt import models
from keras_corrupt.evaluation import thesis_tables
from keras_corrupt.models import Electra
def f():
    import keras_corrupt
    from keras_corrupt.tasks.glue import TASKS
"""
    assert imports_of(source) == {
        *("data.records", "models", "evaluation.thesis_tables", "", "tasks.glue")
    }


if __name__ == "__main__":
    (ROOT / "BUILD").write_text(render())
