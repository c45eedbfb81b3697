"""What the pages install exists: accelerators' packages, and the extras of setup.py."""

import re
from importlib import metadata

import pytest

from tests.conftest import PAGES, ROOT

TEXT = "".join(page.read_text() for page in [*PAGES, ROOT / "CONTRIBUTING.md"])
PACKAGES = re.findall(r"^pip install -e \. '(\w+)\[([\w-]+)\]'$", TEXT, re.MULTILINE)
EXTRAS = re.findall(r"pip install -e '\.\[([\w,-]+)\]'", TEXT)


def test_each_accelerator_has_a_command():
    expected = {("jax", "cuda12"), ("jax", "tpu"), ("tensorflow", "and-cuda")}
    assert expected <= {*PACKAGES}


@pytest.mark.parametrize("package, extra", PACKAGES)
def test_the_package_has_the_extra(package, extra):
    assert extra in metadata.metadata(package).get_all("Provides-Extra")
    # It brings what computes on the accelerator.
    brought = {"cuda12": "cuda12", "cuda13": "cuda13", "tpu": "libtpu"}
    wanted = brought.get(extra, "nvidia-cudnn")
    marked = [r for r in metadata.requires(package) if f'extra == "{extra}"' in r]
    assert any(wanted in requirement for requirement in marked)


def test_each_extra_is_in_setup():
    named = {extra for extras in EXTRAS for extra in extras.split(",")}
    assert "test" in named and len(named) > 5
    setup = (ROOT / "setup.py").read_text()
    assert not [extra for extra in named if f'"{extra}": ' not in setup]
