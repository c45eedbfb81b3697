import dataclasses
import json
import re
import types

import keras
import numpy as np
import pytest

from keras_corrupt.downstream import (
    TextClassifier,
    TokenTagger,
    finetune,
    finetuner,
    results,
)
from keras_corrupt.downstream.finetuner import Finetuner, with_changes
from keras_corrupt.models import Electra
from keras_corrupt.models.fine_tuning import FineTuningSettings
from keras_corrupt.tasks.task import Split
from keras_corrupt.training.out_of_memory import OutOfMemoryError
from tests.downstream.conftest import animals

pytestmark = pytest.mark.usefixtures("graphs")


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
    again = alone.result(alone.settings, 1, tmp_path / "other")
    keys = "score", "curve", "metrics"
    assert [first.results[1][k] for k in keys] == [again[k] for k in keys]


def test_other_settings_are_refused_where_a_run_is_finished(config):
    config = brief(config)
    finetune([animals()], config)
    settings = {**config.settings, "learning_rate": 2e-3}
    other = dataclasses.replace(config, settings=settings)
    with pytest.raises(ValueError, match="learning_rate: was 0.005, asked 0.002"):
        finetune([animals()], other)


def test_what_a_result_records(config, tmp_path):
    # A file with other names or values would no longer be recognised.
    config = brief(config)
    finetune([animals()], config)
    path = tmp_path / "out" / "animals" / "published" / "seed-0.json"
    settings = json.loads(path.read_text())["settings"]
    assert settings.pop("preset").startswith("preset ")
    assert settings.pop("fingerprints") == {
        name: split.fingerprint() for name, split in animals().splits.items()
    }
    assert settings == {
        "load_weights": True,
        "max_length": None,
        "dtype": "float32",
        "examples": {"train": 192, "dev": 40, "test": 30},
        "task": {"labels": ["cat", "dog"], "score_range": None, "pairs": False},
        "seed": 0,
        "learning_rate": 0.005,
        "epochs": 1,
        "batch_size": 8,
        "layer_decay": 1.0,
        "layer_decay_rule": "paper",
        "warmup_fraction": 0.1,
        "weight_decay": 0.0,
        "beta_2": 0.999,
        "bias_correction": True,
        "clip_norm": 1.0,
        "dropout": 0.0,
        "report": "last",
    }


@keras.saving.register_keras_serializable(package="tests")
class Own(Electra):
    """A system that this package knows nothing of."""

    @classmethod
    def fine_tuning(cls, size, task):
        return FineTuningSettings(learning_rate=0.5, epochs=len(task))


def test_a_system_of_ones_own_brings_its_settings(config, tmp_path):
    electra = Electra.from_preset(config.preset)
    own = Own(**electra.get_config(), tokenizer=electra.tokenizer)
    own.save_to_preset(tmp_path / "own")
    config = dataclasses.replace(config, preset=str(tmp_path / "own"), settings={})
    finetuner = Finetuner(animals(), config)
    assert finetuner.new_model().pretrained_by == "tests>Own"
    assert finetuner.settings == FineTuningSettings(0.5, epochs=len("animals"))
    assert "note:" not in finetuner.banner()
    # A task may start from a model that was fine-tuned before.
    finetuner.new_model().save_to_preset(tmp_path / "tuned")
    config = dataclasses.replace(config, preset=str(tmp_path / "tuned"))
    assert Finetuner(animals(), config).settings.learning_rate == 0.5


def test_labels_that_train_lacks_are_said(config):
    task = animals()
    task.splits["dev"].labels[:6] = [*"aabcde"]
    task.splits["dev"].labels[6] = "f"
    (line,) = [s for s in Finetuner(task, config).banner().splitlines() if "lacks" in s]
    assert line == (
        "dev:         40 examples; 7 labels that train lacks, which count as wrong: "
        "'a' (2), 'b' (1), 'c' (1), 'd' (1), 'e' (1), 1 others"
    )


def test_labels_that_dev_lacks_and_texts_that_are_cut_are_said(config):
    task = animals()
    task.splits["dev"].labels[:] = ["cat"] * len(task.splits["dev"])
    config = dataclasses.replace(config, max_length=8)
    lines = Finetuner(task, config).banner().splitlines()
    assert "dev:         40 examples; none has 'dog'" in lines
    (length,) = [line for line in lines if line.startswith("length:")]
    assert re.search(r"; \d+ of 192 to train on have as many, and may", length)


def test_settings_where_the_system_is_not_known(config, tmp_path):
    config = dataclasses.replace(config, settings={})
    model = TextClassifier.from_preset(
        config.preset, labels=["a"], pretrained_by="other>Gone"
    )
    model.save_to_preset(tmp_path / "tuned")
    unknown = dataclasses.replace(config, preset=str(tmp_path / "tuned"))
    finetuner = Finetuner(animals(), unknown)
    assert finetuner.settings == Finetuner(animals(), config).settings
    (note,) = [s for s in finetuner.banner().splitlines() if s.startswith("note:")]
    assert "'other>Gone'" in note and "thesis" in note


class Shouter(TextClassifier):
    """A model of one's own for a kind that there is a model for."""

    def decode(self, *arguments):
        return [label.upper() for label in super().decode(*arguments)]


def test_a_task_may_bring_its_own_model(config):
    task = animals()
    task.model = Shouter
    finetuner = Finetuner(task, config)
    assert isinstance(finetuner.new_model(), Shouter)
    assert finetuner.banner().startswith("animals:     Shouter of preset")


def test_a_kind_without_a_model_is_refused(config):
    task = animals()
    task.kind = "poetry"
    with pytest.raises(ValueError, match="kind 'poetry'.*text_classification.*`model`"):
        Finetuner(task, config)


def test_settings_are_changed_by_name(config):
    settings = with_changes(Electra.fine_tuning("small", "RTE"), {"epochs": "7"})
    assert settings.epochs == 7
    assert with_changes(settings, {"bias_correction": "False"}).bias_correction is False
    with pytest.raises(ValueError, match="rate; known are learning_rate"):
        with_changes(settings, {"rate": 1})


def test_new_weights_instead_of_the_presets(config):
    task = Finetuner(animals(), dataclasses.replace(config, load_weights=False))
    pretrained = Finetuner(animals(), config)

    def embeddings(finetuner):
        return np.array(finetuner.new_model().encoder.embeddings.token.embeddings)

    assert np.array_equal(embeddings(pretrained), embeddings(pretrained))
    assert not np.allclose(embeddings(task), embeddings(pretrained))


def test_a_failed_run_is_repeated_and_reported(config, monkeypatch, capsys):
    config = dataclasses.replace(brief(config), retries=2)
    seeds = []
    train_and_evaluate = Finetuner.train_and_evaluate

    def counted(self, settings, seed):
        seeds.append(seed)
        monkeypatch.setattr(self.task, "failure", lambda *_: "it is a test")
        return train_and_evaluate(self, settings, seed)

    monkeypatch.setattr(Finetuner, "train_and_evaluate", counted)
    (row,) = finetune([animals()], config)
    assert len(set(seeds)) == 3
    assert row.results[0]["failed"] and row.results[0]["attempts"] == 3
    assert "1 (1 failed)" in results.table([row])
    assert row.results[0]["failure"] == "it is a test"
    printed = capsys.readouterr().out
    assert printed.count("This run failed: it is a test. It is repeated with") == 2
    assert printed.count("This run failed: it is a test.") == 3


def test_an_infinite_loss_is_a_failure_that_leaves_numbers(config):
    settings = {**config.settings, "learning_rate": 1e30, "epochs": 3, "clip_norm": 0.0}
    config = dataclasses.replace(config, seeds=1, retries=0, settings=settings)
    (row,) = finetune([animals()], config)
    (run,) = row.results
    assert run["failed"] and not np.isfinite(run["curve"][-1]["loss"])
    assert "training loss is" in run["failure"]
    assert 0 <= run["score"] <= 100


def test_too_little_memory_names_remedies(config, monkeypatch):
    def exhaust_memory(*_):
        keras.ops.ones((10**7, 10**8))  # four petabytes

    monkeypatch.setattr(finetuner, "fit", exhaust_memory)
    remedies = r"(?s)batch_size \d+ .*--max_length 12 .*complete are kept"
    with pytest.raises(OutOfMemoryError, match=remedies):
        finetune([animals()], brief(config))


def test_search_takes_the_settings_with_the_best_median(config, monkeypatch):
    searched = {"learning_rate": (1e-7, 5e-3)}
    monkeypatch.setattr(Electra, "fine_tuning_search", lambda *_: searched)
    settings = {n: v for n, v in config.settings.items() if n not in searched}
    changes = {"search": True, "seeds": 1, "retries": 0, "settings": settings}
    config = dataclasses.replace(config, **changes)
    (row,) = finetune([animals()], config)
    assert row.results[0]["settings"]["learning_rate"] == 5e-3
    assert "learning_rate=0.005" in row.results[0]["folder"]
    given = dataclasses.replace(config, settings={"learning_rate": 1e-3, "epochs": 1})
    finetuner = Finetuner(animals(), given)
    assert finetuner.searched == {}
    assert [settings.learning_rate for settings, _ in finetuner.points()] == [1e-3]


def test_the_best_epoch_counts_where_the_paper_says_so(config, monkeypatch, tmp_path):
    """What is trained here is a bias alone, so that one label is always predicted."""
    labels = animals().splits["dev"].labels
    often, rare = sorted(("cat", "dog"), key=labels.count, reverse=True)
    assert labels.count(often) > labels.count(rare)
    epochs = iter([rare, often, rare])

    def fit(model, *_):
        model.head.dense.bias.assign(100 * (np.array(model.labels) == next(epochs)))
        return 1.0

    monkeypatch.setattr(finetuner, "fit", fit)
    settings = {**config.settings, "epochs": 3, "report": "best"}
    config = dataclasses.replace(config, seeds=1, retries=0, settings=settings)
    (run,) = Finetuner(animals(), config).run()
    shares = [100 * labels.count(label) / len(labels) for label in (rare, often, rare)]
    assert [point["accuracy"] for point in run["curve"]] == pytest.approx(shares)
    assert run["score"] == pytest.approx(shares[1])
    saved = TextClassifier.from_preset(str(tmp_path / "out/animals/published/preset"))
    assert saved.predictions(["the cat", "a dog"]) == [often] * 2


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


def test_taggers_predict_together_and_span_extractors_do_not(config, tmp_path):
    words = [["the", "cat"], ["a", "dog", "sat"]]
    task = types.SimpleNamespace(name="tags", model=None, kind="tagging")
    models = [TokenTagger.from_preset(config.preset, labels=["X", "Y"]) for _ in "ab"]
    features = models[0].features(words)
    for seed, model in enumerate(models):
        arrays = results.stacked(model.outputs(features))
        np.savez(
            tmp_path / f"seed-{seed}.npz", **{f"dev/{k}": v for k, v in arrays.items()}
        )
    tagger = types.SimpleNamespace(
        new_model=lambda: models[0],
        dev="dev",
        features={"dev": features},
        splits={"dev": Split(words, [["X"] * 2, ["Y"] * 3])},
        write_predictions=lambda *_: None,
        metrics=lambda model, _, rows: model.decode(words, features, rows),
    )
    runs = [
        {"score": 1.0, "folder": str(tmp_path), "settings": {"seed": seed}}
        for seed in (0, 1)
    ]
    logits = np.mean(
        [np.load(tmp_path / f"seed-{s}.npz")["dev/logits"] for s in (0, 1)], axis=0
    )
    found = results.ensemble(tagger, runs, 2)["dev"]
    assert found == [
        [["X", "Y"][i] for i in rows[1 : 1 + len(sentence)].argmax(axis=1)]
        for rows, sentence in zip(logits, words, strict=True)
    ]
    task.kind = "span_extraction"
    with pytest.raises(ValueError, match="not of SpanExtractor; leave out `ensemble`"):
        Finetuner(task, dataclasses.replace(config, ensemble=2))


def test_nothing_is_written_when_a_task_cannot_work(config, tmp_path):
    with pytest.raises(ValueError, match="no example in 'dev'"):
        finetune([animals(), animals(dev=0)], config)
    with pytest.raises(ValueError, match="`settings`: there is no setting rate"):
        finetune([animals()], dataclasses.replace(config, settings={"rate": 1}))
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


def test_all_seeds_train_where_the_loss_is_scaled(config):
    config = dataclasses.replace(brief(config), seeds=2, dtype="mixed_float16")
    (row,) = finetune([animals()], config)
    assert [result["settings"]["seed"] for result in row.results] == [0, 1]
    first, second = (result["curve"][0]["loss"] for result in row.results)
    assert np.isfinite([first, second]).all() and first != second


def test_examples_without_features_show_before_training(config, monkeypatch):
    features = TextClassifier.features

    def of_training_alone(self, examples, labels=None):
        if labels is None:
            raise ValueError("no features of dev")
        return features(self, examples, labels)

    monkeypatch.setattr(TextClassifier, "features", of_training_alone)
    monkeypatch.setattr(finetuner, "fit", lambda *_: pytest.fail("it trains"))
    with pytest.raises(ValueError, match="no features of dev"):
        finetune([animals()], brief(config))
    with pytest.raises(ValueError, match="`tasks` is empty"):
        finetune([], config)


def test_a_model_predicts_for_lists(config):
    model = Finetuner(animals(), config).new_model()
    assert model.predictions([]) == []
    with pytest.raises(ValueError, match="must be a list; got 'a cat'"):
        model.predictions("a cat")
