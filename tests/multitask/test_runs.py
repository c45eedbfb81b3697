"""The runs of a comparison: made once, continued, refused."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_corrupt.downstream import TextClassifier, finetuner
from keras_corrupt.models.fine_tuning import settings
from keras_corrupt.multitask import MultiTaskConfig, run, trainer
from keras_corrupt.multitask.runs import Runs
from keras_corrupt.multitask.strategies import STRATEGIES, settings_of
from keras_corrupt.presets import load_preset
from keras_corrupt.tasks.task import Split
from keras_corrupt.tasks.text_task import TextTask
from keras_corrupt.training.out_of_memory import OutOfMemoryError
from tests.downstream.conftest import cats_and_dogs

ROOT = Path(__file__).parents[2]

pytest.importorskip("statsmodels")


def small_tasks(train=24):
    animals = {"train": cats_and_dogs(train), "dev": cats_and_dogs(10, seed=1)}

    def lengths(split):
        labels = [float(len(text.split())) for text in split.examples]
        return dataclasses.replace(split, labels=labels)

    words = {name: lengths(split) for name, split in animals.items()}
    return [
        TextTask("animals", animals, ["cat", "dog"], metrics=("accuracy",)),
        TextTask("words", words, None, (0, 10), ("spearman",)),
    ]


@pytest.fixture
def config(preset, tmp_path):
    return small_config(preset, tmp_path / "out")


def small_config(preset, output, **changes):
    quick = {"learning_rate": 5e-3, "epochs": 2, "batch_size": 4}
    return MultiTaskConfig(
        preset=preset, output=str(output), seeds=1, settings=quick, **changes
    )


def files(folder):
    found = {p: p.stat().st_mtime_ns for p in folder.rglob("*") if p.is_file()}
    return {p: t for p, t in found.items() if not p.name.startswith("results")}


def test_all_is_made_once_and_compared(config, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(TextTask, "failure", lambda *_: "it was made to fail")
    compared = ("single", "multi", "multi_to_multi", "multi_then_single")
    config = dataclasses.replace(config, strategies=compared, distill=True)
    found = run(small_tasks(), config)
    assert {*found} == {*compared, "single_to_multi"}
    output = tmp_path / "out"
    told = capsys.readouterr().out
    assert "| single_to_multi | " in told
    assert "| single_to_multi | " in (output / "results.md").read_text()
    assert (output / "results.png").stat().st_size > 1000
    for name in found:
        for group in ["all"] if STRATEGIES[name].multi else ["animals", "words"]:
            folder = output / name / group
            result = json.loads((folder / "seed-0.json").read_text())
            tasks = ["animals", "words"] if group == "all" else [group]
            assert result["scores"] == {task: found[name][task][0] for task in tasks}
            assert not (folder / "seed-0.checkpoints").exists()
            assert result["failures"] == dict.fromkeys(tasks, "it was made to fail")
            for task in tasks:
                assert f"{name}, seed 0 failed on {task}: it was made to fail." in told
    taught, multi = (
        json.loads((output / name / "all" / "seed-0.json").read_text())["curve"]
        for name in ("single_to_multi", "multi")
    )
    assert taught[0]["loss"] != multi[0]["loss"]

    # What was saved predicts what was scored.
    task = small_tasks()[0]
    both = load_preset(output / "multi" / "all" / "preset").part("animals")
    alone = load_preset(output / "single" / "animals" / "preset")
    assert type(alone) is TextClassifier
    for name, model in (("multi", both), ("single", alone)):
        predicted = model.predictions(task.splits["dev"].examples)
        score = task.metrics(predicted, task.splits["dev"])["accuracy"]
        assert score == found[name]["animals"][0]

    times = files(output)
    assert run(small_tasks(), config) == found
    assert files(output) == times
    # With teachers' files from elsewhere no teacher is needed.
    elsewhere = tmp_path / "elsewhere"
    other = dataclasses.replace(
        config,
        output=str(elsewhere),
        strategies=("single_to_multi",),
        teacher_outputs=str(output / "teachers" / "single"),
    )
    again = run(small_tasks(), other)
    assert not (elsewhere / "single").exists()
    for task, scores in again["single_to_multi"].items():
        assert scores == pytest.approx(found["single_to_multi"][task], abs=1e-3)
    (elsewhere / "cut").mkdir()
    for task in ("animals", "words"):
        whole = (output / "teachers" / "single" / f"{task}.npz").read_bytes()
        (elsewhere / "cut" / f"{task}.npz").write_bytes(whole[:-100])
    cut = dataclasses.replace(
        other, output=str(tmp_path / "new"), teacher_outputs=str(elsewhere / "cut")
    )
    with pytest.raises(ValueError, match="animals.npz is no whole file of teachers'"):
        run(small_tasks(), cut)
    assert not (tmp_path / "new").exists()


KILLED = """
import os, signal, sys
import tensorflow as tf
from keras_corrupt.multitask import run, trainer
from tests.multitask.test_runs import small_config, small_tasks

preset, output = sys.argv[1:]
epochs = iter(range(100))
fit = trainer.fit

def killed(*args):
    loss = fit(*args)
    if next(epochs) == 6:  # within the third of four epochs of `multi`
        os.kill(os.getpid(), signal.SIGKILL)
    return loss

trainer.fit = killed
tf.config.run_functions_eagerly(True)
run(small_tasks(), small_config(preset, output))
"""


def test_a_killed_run_goes_on_to_the_same_weights(preset, tmp_path):
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, preset, str(tmp_path / "killed")],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    folder = tmp_path / "killed"
    (checkpoint,) = folder.glob("multi/all/seed-0.checkpoints/*.npz")
    assert checkpoint.name == "step-000000002.npz"
    before = files(folder / "single")
    config = small_config(preset, folder)
    other = dataclasses.replace(config, multi_settings={"epochs": 3})
    with pytest.raises(ValueError, match="examples or settings are not .*checkpoints"):
        run(small_tasks(), other)
    with pytest.raises(ValueError, match="examples or settings are not .*checkpoints"):
        run(small_tasks()[::-1], config)  # the heads would change places
    run(small_tasks(), config)
    assert files(folder / "single") == before
    whole = tmp_path / "whole"
    run(small_tasks(), small_config(preset, whole))
    models = [load_preset(path / "multi/all/preset") for path in (folder, whole)]
    for a, b in zip(*(model.get_weights() for model in models), strict=True):
        np.testing.assert_array_equal(a, b)
    a, b = (
        json.loads((path / "multi/all/seed-0.json").read_text())
        for path in (folder, whole)
    )
    assert a["scores"] == b["scores"]
    assert [p["loss"] for p in a["curve"]] == [p["loss"] for p in b["curve"]]


def test_bad_tasks_and_settings_are_refused_before_any_work(config, tmp_path):
    def refused(message, tasks=None, **changes):
        with pytest.raises(ValueError, match=message):
            run(tasks or small_tasks(), dataclasses.replace(config, **changes))

    refused("Two tasks have one name, 'animals'", small_tasks() + small_tasks()[:1])
    refused("`strategies` has 'all'; known are single, multi", strategies=("all",))
    refused("--teachers 0 must be at least 1", teachers=0)
    refused("`teachers` is 2, but there are 1 runs: raise `seeds`", teachers=2)
    refused("`settings`: there is no setting rate", settings={"rate": 1})
    refused("`multi_settings`: there is no setting rate", multi_settings={"rate": 1})
    refused("no example in 'dev'", [_with(small_tasks()[0], dev=Split([], [], []))])
    refused("is no whole file of teachers' outputs", teacher_outputs=str(tmp_path))
    with pytest.raises(ValueError, match="All of the 1 training examples of animals"):
        small_tasks(train=1)
    cow = Split(["a", "b"], ["cat", "cow"], ["0", "1"])
    strange = _with(small_tasks()[0], train=cow)
    refused("Unknown label 'cow'", [strange])
    assert not (tmp_path / "out").exists()


def test_results_of_other_settings_are_refused_before_any_work(config, tmp_path):
    path = tmp_path / "out/multi/all/seed-0.json"
    path.parent.mkdir(parents=True)
    identity = Runs(small_tasks(), config).identity("multi", "all", 0)
    path.write_text(json.dumps({"settings": identity, "score": 50.0}))
    Runs(small_tasks(), config)
    changed = dataclasses.replace(config, multi_settings={"epochs": 3})
    with pytest.raises(
        ValueError, match="multi/all/seed-0.json is .*epochs: was 4, asked 3"
    ):
        run(small_tasks(), changed)
    assert [p for p in (tmp_path / "out").rglob("*") if p.is_file()] == [path]


def test_what_a_run_starts_and_learns_from_decides_it(config, tmp_path):
    name = "single_to_multi_then_single"
    of = dataclasses.replace(config, strategies=(name,), teachers=1)
    path = tmp_path / f"out/{name}/animals/seed-0.json"
    path.parent.mkdir(parents=True)
    identity = Runs(small_tasks(), of).identity(name, "animals", 0)
    assert set(identity["origins"]) == {"single_to_multi/all"}
    path.write_text(json.dumps({"settings": identity, "score": 50.0}))
    Runs(small_tasks(), of)
    for changes in ({"multi_settings": {"epochs": 3}}, {"teachers": 2}):
        with pytest.raises(ValueError, match="seed-0.json is .*origins: was"):
            Runs(small_tasks(), dataclasses.replace(of, **changes))
    animals, words = small_tasks()
    words = _with(words, train=small_tasks(train=20)[1].splits["train"])
    with pytest.raises(ValueError, match="seed-0.json is .*origins: was"):
        Runs([animals, words], of)


@pytest.mark.parametrize(
    ("strategy", "flag"), [("single", "--settings"), ("multi", "--multi_settings")]
)
def test_too_little_memory_names_remedies(config, monkeypatch, strategy, flag):
    def exhaust_memory(*_):
        keras.ops.ones((10**7, 10**8))  # four petabytes

    monkeypatch.setattr(trainer, "fit", exhaust_memory)
    remedies = rf"(?s)  {flag} batch_size \d+ .*--max_length \d+ .*complete are kept"
    with pytest.raises(OutOfMemoryError, match=remedies):
        run(small_tasks(), dataclasses.replace(config, strategies=(strategy,)))


def _with(task, **splits):
    task.splits = {**task.splits, **splits}
    return task


def test_settings_of_large_encoders_are_the_thesis_s():
    large = settings("large", "CoLA")
    multi = settings_of(STRATEGIES["single_to_multi"], large)
    assert (multi.learning_rate, multi.epochs, multi.batch_size, multi.layer_decay) == (
        *(1e-4, 6, 128, 0.9),
    )
    assert settings_of(STRATEGIES["single"], large) == large
    after = settings_of(STRATEGIES["single_to_multi_then_single"], large)
    assert after.learning_rate == pytest.approx(1e-5)
    assert dataclasses.replace(after, learning_rate=5e-5) == large
    assert settings_of(STRATEGIES["no_layer_decay"], large).layer_decay == 1.0


def test_all_tasks_have_the_same_settings(config, monkeypatch):
    """Alone, RTE and STS-B have 10 epochs (table 5.2): more than one model of all."""
    monkeypatch.setattr(finetuner, "size_of", lambda encoder: "large")
    tasks = small_tasks()
    tasks[0].name, tasks[1].name = "RTE", "STS-B"
    runs = Runs(tasks, dataclasses.replace(config, settings={}))
    single, multi = runs.settings("single"), runs.settings("multi")
    assert (single.epochs, single.batch_size, single.learning_rate) == (3, 32, 5e-5)
    assert (multi.epochs, multi.batch_size, multi.learning_rate) == (6, 128, 1e-4)
    banner = runs.banner()
    assert banner.count("epochs 3,") == 2 and banner.count("epochs 6,") == 1
    assert runs.identity("single", "RTE", 0)["epochs"] == 3


def test_smoke_is_brief(config):
    brief = dataclasses.replace(config, seeds=9).shrunk()
    assert (brief.seeds, brief.max_train_examples, brief.max_length) == (2, 16, 32)
    assert brief.settings["epochs"] == brief.multi_settings["epochs"] == 1
