"""The pages that people read: their commands parse, their examples and links exist."""

import ast
import functools
import importlib
import inspect
import os
import re
import runpy
import shlex
import sys

import pytest
import tyro

from keras_corrupt.presets.locations import directory_of
from tests.conftest import PAGES, ROOT

#: Passes the flags that it does not know to Beam.
BEAM = "keras_corrupt.data.beam"


def name_of(page):
    return page.relative_to(ROOT).as_posix()


every_page = pytest.mark.parametrize("page", PAGES, ids=name_of)


def blocks(page, language):
    pattern = rf"^```{language}\n(.*?)^```$"
    return re.findall(pattern, page.read_text(), re.MULTILINE | re.DOTALL)


def commands():
    """Returns the different commands that run Python, as tuples of arguments."""
    found = {}
    for block in (block for page in PAGES for block in blocks(page, "shell")):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line.partition(" < ")[0], comments=True)
            while words and re.match(r"\w+=", words[0]):  # environment variables
                del words[0]
            if words and words[0] == "keras-corrupt":
                words[:1] = ["python", "-m", "keras_corrupt"]
            if words and words[0] == "python" and not {"-c", BEAM} & {*words}:
                found[tuple(words[1:])] = None
    return list(found)


class ParsedError(Exception):
    """Ends a command where its flags have been read."""


@pytest.fixture
def parse(tmp_path, monkeypatch):
    """Returns a function that runs a command until its flags have been read."""
    cli, subcommand_cli = tyro.cli, tyro.extras.subcommand_cli_from_dict

    def inert(function):
        return functools.wraps(function)(lambda *args, **kwargs: None)

    def parse_only(f, *args, **kwargs):
        cli(inert(f) if inspect.isfunction(f) else f, *args, **kwargs)
        raise ParsedError

    def parse_subcommand_only(functions, **kwargs):
        subcommand_cli({name: inert(f) for name, f in functions.items()}, **kwargs)
        raise ParsedError

    # `keras-corrupt pretrain` and `finetune` make a recipe the main module.
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(tyro, "cli", parse_only)
    monkeypatch.setattr(tyro.extras, "subcommand_cli_from_dict", parse_subcommand_only)
    # Adaptation asks the preset for its system before it reads flags.
    (tmp_path / "runs/news").mkdir(parents=True)
    (tmp_path / "runs/news/preset").symlink_to(directory_of("tiny_en"))
    monkeypatch.chdir(tmp_path)

    def run(words):
        monkeypatch.setattr(sys, "argv", [*words])
        path = words[0]
        if path == "-m":
            monkeypatch.setattr(sys, "argv", [*words[1:]])
            path = words[1].replace("keras_corrupt.recipes", "recipes")  # In a wheel.
            path = path.replace(".", "/")
            path += "/__main__.py" if (ROOT / path).is_dir() else ".py"
        runpy.run_path(str(ROOT / path), run_name="__main__")

    return run


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_a_command_takes_its_flags(parse, words):
    if words == ("-m", "keras_corrupt.evaluation.thesis_tables"):
        parse(words)  # It has no flags, and ends soon.
        return
    with pytest.raises((ParsedError, SystemExit)) as end:
        parse(words)
    assert end.type is ParsedError or ("--help" in words and end.value.code == 0)


@every_page
def test_an_example_finds_its_names(page):
    for block in blocks(page, "python"):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom):
                module = importlib.import_module(node.module)
                assert all(hasattr(module, alias.name) for alias in node.names)
            elif isinstance(node, ast.Attribute):
                first, *path = ast.unparse(node).split(".")
                if first == "keras_corrupt":
                    module = importlib.import_module(first)
                    functools.reduce(getattr, path, module)


def anchors(page):
    """Returns the anchors that GitHub makes of a page's headings."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", t.lower()).replace(" ", "-") for t in titles}


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=name_of)
def test_links_lead_somewhere(page):
    if "TEST_SRCDIR" in os.environ:
        pytest.skip("needs the whole tree, not Bazel's sandbox")
    text = page.read_text()
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    links += re.findall(r"^\[\w+\]: (\S+)", text, re.MULTILINE)
    for link in (link for link in links if not link.startswith("https://")):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=name_of)
def test_a_page_begins_with_a_command_and_is_in_the_readme(page):
    title, first = [line for line in page.read_text().splitlines() if line][:2]
    assert title.startswith("# ") and first == "```shell"
    assert f"({name_of(page)})" in (ROOT / "README.md").read_text()
