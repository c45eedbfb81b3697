import importlib
import json

import pytest

from benchmarks import cross_view, equal_compute
from benchmarks.workers import Worker
from keras_corrupt.cross_view import CrossViewConfig
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


def test_a_score_of_other_settings_is_not_taken(tmp_path, monkeypatch):
    monkeypatch.setattr(cross_view.cross_view, "train", None)  # there is none to do
    config = CrossViewConfig(output=str(tmp_path), steps=8)
    (tmp_path / "results.json").write_text("{}")
    (tmp_path / "run.json").write_text(json.dumps(config.as_dict()))
    cross_view.finish(None, config)
    with pytest.raises(ValueError, match="steps: was 8, asked 9"):
        cross_view.finish(None, CrossViewConfig(output=str(tmp_path), steps=9))


WORKER = """
import sys
import time

from benchmarks.workers import serve

print("begins with", *sys.argv[1:])
serve({
    "add": lambda a, b: int(a) + int(b),
    "sleep": lambda: time.sleep(60),
    "fail": lambda: 1 / 0,
})
"""


@pytest.fixture
def worker(tmp_path):
    (tmp_path / "adding.py").write_text(WORKER)
    path = {"PYTHONPATH": str(tmp_path)}
    worker = Worker("adding", ["a b", 3], tmp_path / "log", path)
    yield worker
    worker.end()


def test_a_worker_answers_until_it_fails(worker):
    assert worker.answer() == "ready"
    assert worker.last_line == "begins with work a b 3"
    assert worker.ask("add 2 3") == "5"
    assert worker.ask("fail") is None
    assert worker.ask("add 2 3") is None
    assert worker.answer() is None
    assert worker.last_line == "ZeroDivisionError: division by zero"


def test_nobody_waits_for_a_worker_longer_than_wanted(worker):
    assert worker.answer(60) == "ready"
    assert worker.ask("sleep", 0.1) is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"systems": ("FullyExplored",), "batch_size": 30}, "must be a multiple of 4"),
        ({"other_data": ("a/news", "b/news")}, "have one name"),
    ],
)
def test_equal_compute_refuses_before_it_trains(settings, message):
    with pytest.raises(SystemExit, match=message):
        equal_compute.check(equal_compute.Settings("DATA", "RUNS", **settings))
