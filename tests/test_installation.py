"""README's commands for accelerators ask for what the packages have."""

import re
from importlib import metadata
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text()
EXTRAS = re.findall(r"^pip install -e \. '(\w+)\[([\w-]+)\]'$", README, re.MULTILINE)


def test_each_accelerator_has_a_command():
    expected = {("jax", "cuda12"), ("jax", "tpu"), ("tensorflow", "and-cuda")}
    assert expected <= {*EXTRAS}


@pytest.mark.parametrize("package, extra", EXTRAS)
def test_the_package_has_the_extra(package, extra):
    assert extra in metadata.metadata(package).get_all("Provides-Extra")
    # It brings what computes on the accelerator.
    brought = {"cuda12": "cuda12", "cuda13": "cuda13", "tpu": "libtpu"}
    wanted = brought.get(extra, "nvidia-cudnn")
    marked = [r for r in metadata.requires(package) if f'extra == "{extra}"' in r]
    assert any(wanted in requirement for requirement in marked)
