"""The cache of what Numba compiled."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from keras_corrupt import cpu_kernels

#: A kernel's file, with a function of `numbers` compiled into it.
PROBE = """
from keras_corrupt.cpu_kernels.compiling import compiled
from keras_corrupt.cpu_kernels.numbers import exp


@compiled
def probe(x):
    return exp(x)
"""
# Without the packages' own `__init__`, which import TensorFlow.
RUN = """
import json
import sys
import types
import numpy as np

for name in ("keras_corrupt", "keras_corrupt.cpu_kernels"):
    sys.modules[name] = types.ModuleType(name)
sys.modules[name].__path__ = [sys.argv[1]]
from keras_corrupt.cpu_kernels.probe import probe

value = float(probe(np.float32(0)))
print(json.dumps([value, sum(probe.stats.cache_hits.values())]))
"""


@pytest.fixture
def sources(tmp_path):
    """A copy of the package's files."""
    folder = tmp_path / "cpu_kernels"
    folder.mkdir()
    for path in Path(cpu_kernels.__file__).parent.glob("*.py"):
        shutil.copy(path, folder)
    (folder / "probe.py").write_text(PROBE)
    return folder


def run(sources, **environment):
    """Returns e^0 by the kernel, and how often it came from the cache."""
    environment = {
        k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"
    } | environment
    command = [sys.executable, "-c", RUN, str(sources)]
    return json.loads(subprocess.check_output(command, env=environment))


def test_an_edit_of_another_file_is_noticed(sources):
    assert run(sources) == [1, 0]
    assert run(sources) == [1, 1]
    numbers = sources / "numbers.py"
    edited = numbers.read_text().replace("else p * S(", "else F(3) * p * S(")
    numbers.write_text(edited)
    assert run(sources) == [3, 0]
    assert run(sources) == [3, 1]


def test_the_cache_can_be_anywhere_or_nowhere(sources, tmp_path):
    (sources / "__pycache__").write_text("no folder can be here")
    home = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": ""}
    assert [run(sources, **home)[1] for _ in range(2)] == [0, 1]
    assert list((tmp_path / "home/.cache/keras_corrupt").glob("kernels-*"))
    asked = {"NUMBA_CACHE_DIR": str(tmp_path / "asked")}
    assert [run(sources, **asked)[1] for _ in range(2)] == [0, 1]
    nowhere = {"HOME": "/dev/null", "XDG_CACHE_HOME": ""}
    assert [run(sources, **nowhere) for _ in range(2)] == [[1, 0], [1, 0]]


def test_versions_and_processors_have_their_own(monkeypatch):
    from keras_corrupt.cpu_kernels import compiling

    found = {compiling._hash_of_what_code_is_made_from()}
    for module, name in (
        (compiling.numba, "__version__"),
        (compiling.llvmlite, "__version__"),
        (compiling.np, "__version__"),
        (compiling.config, "CPU_FEATURES"),
        (compiling.config, "CPU_NAME"),
    ):
        with monkeypatch.context() as context:
            context.setattr(module, name, "another")
            found.add(compiling._hash_of_what_code_is_made_from())
    assert len(found) == 6
    assert compiling._hash_of_what_code_is_made_from() in found


def test_the_caches_used_last_are_kept(tmp_path, monkeypatch):
    from keras_corrupt.cpu_kernels import compiling

    monkeypatch.setattr(compiling.config, "CACHE_DIR", str(tmp_path))
    parent = tmp_path / "keras_corrupt"
    for age in range(12):
        (parent / f"kernels-{age}").mkdir(parents=True)
        os.utime(parent / f"kernels-{age}", (0, 10**9 - age))
    new = compiling.cache_folder.__wrapped__()
    kept = {new.name, *(f"kernels-{age}" for age in range(7))}
    assert {path.name for path in parent.iterdir()} == kept


def test_a_function_without_a_file_is_compiled():
    from keras_corrupt.cpu_kernels.compiling import compiled

    namespace = {}  # what has no file has no folder for a cache
    exec("def double(x):\n    return x + x", namespace)
    assert compiled(namespace["double"])(np.float32(2)) == 4
