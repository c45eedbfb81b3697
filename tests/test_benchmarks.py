import importlib

import pytest

from tests.conftest import ROOT

PATHS = sorted(path.relative_to(ROOT) for path in ROOT.glob("benchmarks/**/*.py"))
#: Libraries of peers and of browsers, which the tests do not have.
ABSENT = {"torch", "flair", "networkx", "playwright", "transformers"}


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_a_benchmark_finds_what_it_measures(path):
    try:
        importlib.import_module(".".join(path.with_suffix("").parts))
    except ModuleNotFoundError as error:
        if error.name not in ABSENT:
            raise
