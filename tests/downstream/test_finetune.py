import dataclasses
import json
import sys

import numpy as np
import pytest

from keras_corrupt.downstream import FinetuneConfig, TextClassifier, finetune, results
from keras_corrupt.downstream.finetuner import Finetuner, stacked
from keras_corrupt.tasks.text_task import TextTask
from tests.downstream.conftest import cats_and_dogs


def animals(dev=40):
    splits = {"train": cats_and_dogs(192), "dev": cats_and_dogs(dev, seed=1)}
    splits["test"] = dataclasses.replace(cats_and_dogs(30, seed=2), labels=None)
    return TextTask("animals", splits, ["cat", "dog"], metrics=("accuracy", "macro_f1"))


@pytest.fixture
def config(preset, tmp_path):
    settings = {"learning_rate": 5e-3, "epochs": 3, "batch_size": 8, "dropout": 0.0}
    return FinetuneConfig(
        preset=preset, output=str(tmp_path / "out"), seeds=2, settings=settings
    )


def brief(config):
    """One short run."""
    settings = {**config.settings, "epochs": 1}
    return dataclasses.replace(config, seeds=1, settings=settings)


def test_runs_learn_are_kept_and_are_not_run_again(config, tmp_path, capsys):
    (row,) = finetune([animals()], config)
    folder = tmp_path / "out" / "animals" / "published"
    scores = [run["score"] for run in row.results]
    assert min(scores) > row.guess + 20
    assert not any(run["failed"] for run in row.results)
    assert [len(run["curve"]) for run in row.results] == [3, 3]
    assert f"{np.median(scores):.1f}" in capsys.readouterr().out
    assert (tmp_path / "out" / "curves.png").stat().st_size > 1000

    # What was saved is the best run: its preset predicts what was written.
    best = TextClassifier.from_preset(str(folder / "preset"))
    task = animals()
    predictions = best.predictions(task.splits["dev"].examples)
    assert task.metrics(predictions, task.splits["dev"])["accuracy"] == max(scores)
    lines = (folder / "predictions" / "animals-test.tsv").read_text().splitlines()
    written = [line.split("\t")[1] for line in lines[1:]]
    assert written == best.predictions(task.splits["test"].examples)

    times = {p: p.stat().st_mtime_ns for p in folder.rglob("*") if p.is_file()}
    (again,) = finetune([animals()], config)
    assert again.results == row.results
    assert times == {p: p.stat().st_mtime_ns for p in folder.rglob("*") if p.is_file()}
    # One more seed runs alone.
    finetune([animals()], dataclasses.replace(config, seeds=3))
    assert all(p.stat().st_mtime_ns == t for p, t in times.items() if "seed" in p.name)
    assert (folder / "seed-2.json").exists()


def test_a_seed_decides_a_run_whatever_ran_before(config, tmp_path):
    # The second seed trains a model that has been trained, set back to the start.
    settings = {**config.settings, "epochs": 2}
    config = dataclasses.replace(config, settings=settings)
    (first,) = finetune([animals()], config)
    alone = Finetuner(
        animals(), dataclasses.replace(config, output=str(tmp_path / "other"))
    )
    again = alone.result(alone.hyperparameters, 1, tmp_path / "other")
    keys = "score", "curve", "metrics"
    assert [first.results[1][k] for k in keys] == [again[k] for k in keys]


def test_other_settings_are_refused_where_a_run_is_finished(config):
    config = brief(config)
    finetune([animals()], config)
    settings = {**config.settings, "learning_rate": 2e-3}
    other = dataclasses.replace(config, settings=settings)
    with pytest.raises(ValueError, match="learning_rate: was 0.005, asked 0.002"):
        finetune([animals()], other)


def test_new_weights_instead_of_the_presets(config):
    task = Finetuner(animals(), dataclasses.replace(config, load_weights=False))
    pretrained = Finetuner(animals(), config)

    def embeddings(finetuner):
        return np.array(finetuner.new_model().encoder.embeddings.token.embeddings)

    assert np.array_equal(embeddings(pretrained), embeddings(pretrained))
    assert not np.allclose(embeddings(task), embeddings(pretrained))


def test_a_failed_run_is_repeated_and_reported(config, monkeypatch):
    config = dataclasses.replace(brief(config), retries=2)
    seeds = []
    once = Finetuner.once

    def counted(self, settings, seed):
        seeds.append(seed)
        monkeypatch.setattr(self.task, "degenerate", lambda predictions: True)
        return once(self, settings, seed)

    monkeypatch.setattr(Finetuner, "once", counted)
    (row,) = finetune([animals()], config)
    assert len(set(seeds)) == 3
    assert row.results[0]["failed"] and row.results[0]["attempts"] == 3
    assert "1 (1 failed)" in results.table([row])


def test_an_infinite_loss_is_a_failure_that_leaves_numbers(config):
    settings = {**config.settings, "learning_rate": 1e30, "epochs": 3, "clip_norm": 0.0}
    config = dataclasses.replace(config, seeds=1, retries=0, settings=settings)
    (row,) = finetune([animals()], config)
    (run,) = row.results
    assert run["failed"] and not np.isfinite(run["curve"][-1]["loss"])
    assert 0 <= run["score"] <= 100


def test_one_prediction_for_all_is_a_failure():
    task = animals()
    assert task.degenerate(["cat"] * 300 + ["dog"])
    assert not task.degenerate(["cat"] * 90 + ["dog"] * 10)


def test_search_takes_the_settings_with_the_best_median(config, monkeypatch):
    searched = {"learning_rate": (1e-7, 5e-3)}
    module = sys.modules[Finetuner.__module__]
    monkeypatch.setattr(module, "search_space", lambda *_: searched)
    config = dataclasses.replace(config, search=True, seeds=1, retries=0)
    (row,) = finetune([animals()], config)
    assert row.results[0]["settings"]["learning_rate"] == 5e-3
    assert "learning_rate=0.005" in row.results[0]["folder"]


def test_the_best_epoch_counts_where_the_paper_says_so(config):
    settings = {**config.settings, "report": "best", "learning_rate": 2e-2}
    config = dataclasses.replace(config, seeds=1, settings=settings)
    (row,) = finetune([animals()], config)
    (run,) = row.results
    assert run["score"] == max(point["accuracy"] for point in run["curve"])


def test_an_ensemble_predicts_with_the_mean_of_the_outputs(config, tmp_path):
    (row,) = finetune([animals()], dataclasses.replace(config, ensemble=2))
    folder = tmp_path / "out" / "animals" / "published"
    logits = np.mean(
        [np.load(folder / f"seed-{s}.npz")["test/logits"] for s in (0, 1)], axis=0
    )
    lines = (folder / "ensemble" / "animals-test.tsv").read_text().splitlines()
    written = [line.split("\t")[1] for line in lines[1:]]
    assert written == [["cat", "dog"][i] for i in logits.argmax(axis=1)]
    assert row.ensemble is not None and row.ensemble > row.guess
    with pytest.raises(ValueError, match="`ensemble` is 3, but there are 2"):
        finetune([animals()], dataclasses.replace(config, ensemble=3))


def test_nothing_is_written_when_a_task_cannot_work(config, tmp_path):
    with pytest.raises(ValueError, match="no example in 'dev'"):
        finetune([animals(), animals(dev=0)], config)
    with pytest.raises(ValueError, match="--settings has no rate"):
        finetune([animals()], dataclasses.replace(config, settings={"rate": 1}))
    with pytest.raises(ValueError, match="`max_length` must be from 8 to"):
        finetune([animals()], dataclasses.replace(config, max_length=1000))
    assert not (tmp_path / "out").exists()


def test_a_run_cut_short_leaves_no_result(config, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError("No space left on device")

    monkeypatch.setattr(np, "savez_compressed", fail)
    with pytest.raises(OSError, match="No space"):
        finetune([animals()], brief(config))
    assert not list((tmp_path / "out").glob("**/seed-*.json"))
    monkeypatch.undo()
    (row,) = finetune([animals()], brief(config))
    assert len(row.results) == 1


def test_fewer_examples_on_request(config):
    config = dataclasses.replace(
        brief(config), max_train_examples=50, max_dev_examples=10
    )
    (row,) = finetune([animals()], config)
    examples = row.results[0]["settings"]["examples"]
    assert examples == {"train": 50, "dev": 10, "test": 30}


def test_arrays_of_different_lengths_are_stacked():
    rows = [{"x": np.ones((2, 3)), "y": 1.0}, {"x": np.ones((4, 3)), "y": 2.0}]
    arrays = stacked(rows)
    assert arrays["x"].shape == (2, 4, 3) and arrays["x"].sum() == 18
    assert arrays["y"].tolist() == [1.0, 2.0]


def test_table_has_medians_averages_and_what_papers_report():
    def run(score):
        return {"metric": "accuracy", "score": score, "failed": False}

    rows = [
        results.Row("A", [run(1.0), run(2.0), run(9.0)], 0.5, None, {"BERT": 70.0}),
        results.Row("B", [run(4.0)], 0.5, None, {"BERT": 80.0}),
    ]
    lines = results.table(rows).splitlines()
    assert lines[2] == "| A | accuracy | 0.5 | 2.0 | 1.0 to 9.0 | 3 | 70.0 |"
    assert lines[4] == "| average |  |  | 3.0 |  |  | 75.0 |"
    assert json.dumps([dataclasses.asdict(row) for row in rows])
