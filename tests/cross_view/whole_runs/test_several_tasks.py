"""Runs of several tasks."""

import json
import runpy
from pathlib import Path

import pytest

from keras_corrupt.cross_view import (
    CrossViewMultiTaskConfig,
    train,
)
from keras_corrupt.training.callbacks import read_metrics
from tests.cross_view.whole_runs.conftest import (
    config_of,
    continued_from_its_middle,
)

MULTI_TASK_RECIPE = Path(__file__).parents[3] / "recipes" / "cvt_multitask.py"


@pytest.fixture(scope="module")
def both_tasks(task, parsing_task):
    return [task, parsing_task]


@pytest.fixture(scope="module")
def finished_multi_task(files, both_tasks, tmp_path_factory):
    """A run of a tagger and a parser: its directory and its model."""
    run = tmp_path_factory.mktemp("multi_task") / "run"
    return run, train(both_tasks, multi_task_config(files, run))


def multi_task_config(files, run):
    return config_of(
        files,
        run,
        CrossViewMultiTaskConfig,
        lstm_size=8,
        labelled_first=3,
        word_vectors=files["vectors"],
    )


def test_killed_tasks_end_the_same(
    files, both_tasks, finished_multi_task, tmp_path, capsys
):
    config = multi_task_config(files, tmp_path / "killed")
    continued_from_its_middle(finished_multi_task, train, both_tasks, config, capsys)


def test_what_a_run_of_two_tasks_leaves(both_tasks, finished_multi_task):
    run, model = finished_multi_task
    assert {part.hidden_size for part in model.parts} == {4}  # half of the LSTMs'
    assert model.parts[0].vocabulary.words[-1] == "zebra"  # that text does not have
    rows = read_metrics(run / "metrics.csv")
    assert rows[0]["cross_view_loss"] == 0  # labels have the first three updates
    assert rows[0]["loss"] > 2 * rows[0]["supervised_loss"]  # of auxiliary modules, too
    assert rows[-1]["cross_view_loss"] > 0 and rows[-1]["supervised_loss"] > 0
    for task, part, metric in zip(
        both_tasks, model.parts, ("accuracy", "las"), strict=True
    ):
        results = json.loads((run / task.name / "results.json").read_text())
        last = rows[-1][f"val_{task.name}_{metric}"]
        assert results["dev"][metric] == pytest.approx(100 * last)
        loaded = type(part).from_preset(run / task.name / "preset")
        dev = task.splits["dev"].examples
        assert loaded.predictions(dev) == part.predictions(dev)


@pytest.mark.parametrize(
    ("count", "changes", "message"),
    [
        (1, {}, "Name two tasks or more, each differently; got pos"),
        (2, {"preset": "tiny_en"}, "preset.*tiny_en"),
        (2, {"unlabelled": ("nowhere.txt",)}, "nowhere.txt"),
    ],
)
def test_bad_settings_of_several_tasks(
    count, changes, message, files, both_tasks, tmp_path
):
    config = config_of(files, tmp_path / "run", CrossViewMultiTaskConfig, **changes)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        train(both_tasks[:count], config)
    assert not (tmp_path / "run").exists()


def test_the_multi_task_recipe_reads_a_file(monkeypatch, files, tmp_path, capsys):
    pytest.importorskip("ufal.chu_liu_edmonds")
    tables = [("pos", "tagging", ""), ("parsing", "dependencies", "_trees")]
    toml = tmp_path / "tasks.toml"
    with toml.open("w") as file:
        for name, kind, suffix in tables:
            paths = (f'{s} = "{files[s + suffix]}"' for s in ("train", "dev"))
            file.write("\n".join([f"[{name}]", f'kind = "{kind}"', *paths, ""]))
            file.write('scheme = "plain"\n' * (kind == "tagging"))
    flags = ["--task_file", str(toml), "--max_train", "10", "--one_task_at_a_time"]
    flags += ["--unlabelled", files["text"], "--in_words", "--smoke"]
    flags += ["--output", str(tmp_path / "out")]
    monkeypatch.setattr("sys.argv", [str(MULTI_TASK_RECIPE), *flags])
    runpy.run_path(str(MULTI_TASK_RECIPE), run_name="__main__")
    text = capsys.readouterr().out
    assert "labelled:   pos 10, parsing 10" in text and "one task at a time" in text
    assert "pos, dev: accuracy" in text and "parsing, dev: las" in text
    monkeypatch.setattr(
        "sys.argv", [str(MULTI_TASK_RECIPE), "--smoke", "--output", str(tmp_path / "o")]
    )
    runpy.run_path(str(MULTI_TASK_RECIPE), run_name="__main__")
    text = capsys.readouterr().out
    assert "labelled:   names_and_numbers 400, long_and_short 400" in text
    assert "the primary modules learn alone" in text
