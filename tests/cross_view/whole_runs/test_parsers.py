"""Runs of parsers."""

import json
import runpy
import sys
from pathlib import Path

import pytest

from keras_corrupt.cross_view import (
    CrossViewParser,
    ParsingConfig,
    train,
)
from keras_corrupt.cross_view.tasks.dependencies import read_dependencies
from keras_corrupt.training.callbacks import read_metrics
from tests.cross_view.whole_runs.conftest import (
    config_of,
    run_without_files,
)

PARSING_RECIPE = Path(__file__).parents[3] / "recipes" / "cvt_parsing.py"


@pytest.fixture(scope="module")
def finished_parser(files, parsing_task, tmp_path_factory):
    """A parser's run: its directory and its model."""
    run = tmp_path_factory.mktemp("parser") / "run"
    return run, train(parsing_task, config_of(files, run, ParsingConfig))


def test_what_a_parsers_run_leaves(parsing_task, finished_parser):
    run, model = finished_parser
    rows = read_metrics(run / "metrics.csv")
    assert rows[-1]["cross_view_loss"] > 0 and rows[-1]["supervised_loss"] > 0
    results = json.loads((run / "results.json").read_text())
    assert set(results["dev"]) == {"las", "uas", "guess"}
    assert results["dev"]["las"] == pytest.approx(100 * rows[-1]["val_las"])
    loaded = CrossViewParser.from_preset(run / "preset")
    dev = parsing_task.splits["dev"].examples
    predictions = loaded.predictions(dev)
    assert predictions == model.predictions(dev)
    # Read anew, for which they must be trees.
    found = read_dependencies(run / "predictions" / "dev.conllu")
    assert found.examples == dev and found.labels == predictions


@pytest.mark.parametrize(
    "changes, message",
    [
        (
            {"preset": "tiny_en"},
            "'tiny_en' is none of tiny, small, base, large, nor a tagger",
        ),
        ({"views": ("past",)}, "`views` must be different ones of forward_forward"),
        ({"label_smoothing": 0.1}, "`label_smoothing` must be 0"),
    ],
)
def test_bad_settings_of_a_parser(files, parsing_task, tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        train(
            parsing_task, config_of(files, tmp_path / "run", ParsingConfig, **changes)
        )
    assert not (tmp_path / "run").exists()


def test_a_missing_library_is_missed_at_once(
    files, parsing_task, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "ufal.chu_liu_edmonds", None)
    config = config_of(files, tmp_path / "run", ParsingConfig, unlabelled=("nowhere",))
    with pytest.raises(ImportError, match=r"'.\[parsing\]'"):
        train(parsing_task, config)


def test_the_parsing_recipe_runs_without_files(monkeypatch, tmp_path, capsys):
    pytest.importorskip("ufal.chu_liu_edmonds")
    text = run_without_files(PARSING_RECIPE, monkeypatch, tmp_path / "out", capsys)
    assert "unlabelled: 100 sentences, 5 views" in text and "dev: las" in text


def test_the_parsing_recipe_reads_files(monkeypatch, files, tmp_path, capsys):
    pytest.importorskip("ufal.chu_liu_edmonds")
    bare = tmp_path / "bare.conllu"
    bare.write_text("".join(f"{i}\tcat" + 8 * "\t_" + "\n" for i in (1, 2)))
    flags = ["--train", files["train_trees"], "--dev", files["dev_trees"]]
    flags += ["--test", str(bare), "--views", "vat", "--unlabelled", files["text"]]
    flags += ["--in_words", "--max_train", "10", "--smoke"]
    flags += ["--output", str(tmp_path / "out")]
    monkeypatch.setattr("sys.argv", [str(PARSING_RECIPE), *flags])
    runpy.run_path(str(PARSING_RECIPE), run_name="__main__")
    text = capsys.readouterr().out
    assert "labelled:   10 sentences" in text and "1 views" in text
    (tree,) = read_dependencies(tmp_path / "out" / "predictions" / "test.conllu").labels
    assert len(tree) == 2
