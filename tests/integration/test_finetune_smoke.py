"""`--smoke` of the fine-tuning recipes needs no files and no network."""

import json
import runpy
import socket
from pathlib import Path

import pytest

from tests.conftest import without_graphs
from tests.downstream.conftest import preset  # noqa: F401

RECIPES = Path(__file__).parents[2] / "recipes"

#: Recipe -> flags, and the tasks and the metric of its table.
EXPECTED = {
    "glue": ("--tasks CoLA STS-B", "CoLA STS-B", "matthews"),
    "squad": ("--version 2.0", "squad20", "f1"),
    "tagging": ("", "tagging", "f1"),
    "embeddings": ("", "out_miniature", "auc"),
    "text": ("--ensemble 3", "out_miniature", "accuracy"),
    "prompts": ("--tasks SST-2", "SST-2-0 SST-2-1", "accuracy"),
}


def run(name, output, monkeypatch, *flags):
    def refuse(*_):
        raise AssertionError("The recipe asks the network.")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    path = RECIPES / f"finetune_{name}.py"
    flags = ["--smoke", "--output", str(output), *flags]
    monkeypatch.setattr("sys.argv", [str(path), *flags])
    with without_graphs():
        runpy.run_path(str(path), run_name="__main__")
    return json.loads((output / "results.json").read_text())


@pytest.mark.parametrize("name", EXPECTED)
def test_one_task_after_another(name, preset, tmp_path, monkeypatch):  # noqa: F811
    flags, tasks, metric = EXPECTED[name]
    flags = flags.split()
    if name != "prompts":  # which makes its own
        flags += ["--preset", preset]
    rows = run(name, tmp_path / "out", monkeypatch, *flags)
    assert [row["task"] for row in rows] == tasks.split()
    assert rows[0]["results"][0]["metric"] == metric
    for row in rows:
        (result,) = row["results"]
        examples = result["settings"]["examples"]
        assert 0 < examples["dev"] <= 16 and 0 < examples["train"] <= 16


def test_several_tasks_at_once(preset, tmp_path, monkeypatch):  # noqa: F811
    flags = "--tasks RTE MRPC --strategies multi --preset".split()
    found = run("multitask", tmp_path / "out", monkeypatch, *flags, preset)
    assert [*found["scores"]] == ["multi"]
    assert found["metrics"] == {"RTE": "accuracy", "MRPC": "accuracy"}


def test_files_of_the_user_are_taken(preset, tmp_path, monkeypatch):  # noqa: F811
    (tmp_path / "train.tsv").write_text("text\tlabel\n" + "the cat\ta\na dog\tb\n" * 9)
    flags = "--preset", preset, "--train", str(tmp_path / "train.tsv")
    (row,) = run("text", tmp_path / "out", monkeypatch, *flags)
    # The labels of the small files would be four nouns.
    assert row["results"][0]["settings"]["examples"] == {"train": 16, "dev": 2}


def test_every_recipe_is_here():
    names = {path.stem for path in RECIPES.glob("finetune_*.py")}
    assert names == {f"finetune_{name}" for name in [*EXPECTED, "multitask"]}
