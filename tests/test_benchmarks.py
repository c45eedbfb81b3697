import importlib

import pytest

from tests.conftest import ROOT

PATHS = sorted(path.relative_to(ROOT) for path in ROOT.glob("benchmarks/**/*.py"))
#: Libraries of peers, which the tests do not have; `picture.py` runs as a script.
ABSENT = {"torch", "flair", "networkx", "playwright", "transformers", "swapped_words"}


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_a_benchmark_finds_what_it_measures(path):
    try:
        importlib.import_module(".".join(path.with_suffix("").parts))
    except ModuleNotFoundError as error:
        if error.name not in ABSENT:
            raise
