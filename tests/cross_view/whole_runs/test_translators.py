"""Runs of translators."""

import json
import runpy
from pathlib import Path

import pytest

from keras_corrupt.cross_view import (
    CrossViewTranslator,
    TranslationConfig,
    train,
)
from keras_corrupt.cross_view.tasks.translation import TranslationTask
from keras_corrupt.training.callbacks import read_metrics
from tests.cross_view.whole_runs.conftest import (
    config_of,
    run_without_files,
)

TRANSLATION_RECIPE = Path(__file__).parents[3] / "recipes" / "cvt_translation.py"


@pytest.fixture(scope="module")
def translation_task(files):
    pytest.importorskip("sacrebleu")
    splits = {
        split: (files[f"{split}_source"], files[f"{split}_target"])
        for split in ("train", "dev")
    }
    return TranslationTask("glosses", splits)


@pytest.fixture(scope="module")
def finished_translator(files, translation_task, tmp_path_factory):
    """A translator's run: its directory and its model."""
    run = tmp_path_factory.mktemp("translator") / "run"
    return run, train(translation_task, config_of(files, run, TranslationConfig))


def test_what_a_translators_run_leaves(translation_task, finished_translator):
    run, model = finished_translator
    rows = read_metrics(run / "metrics.csv")
    assert rows[-1]["cross_view_loss"] > 0 and rows[-1]["supervised_loss"] > 0
    results = json.loads((run / "results.json").read_text())
    assert set(results["dev"]) == {"bleu", "guess"}
    assert results["dev"]["bleu"] == pytest.approx(100 * rows[-1]["val_bleu"])
    loaded = CrossViewTranslator.from_preset(run / "preset")
    dev = translation_task.splits["dev"].examples
    predictions = loaded.predictions([" ".join(words) for words in dev])
    assert predictions == model.predictions(dev)
    lines = (run / "predictions" / "dev.txt").read_text(encoding="utf-8")
    assert lines == "".join(f"{text}\n" for text in predictions)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"preset": "tiny_en"}, "`preset` is of a network that reads words"),
        ({"views": ("vat",)}, "`views` must be .* full, word_dropout; got"),
        ({"hard_targets": False}, "`hard_targets` must be True"),
        ({"beam_size": 0}, "--beam_size 0 must be"),
        ({"attention_dropout": 1.0}, "--attention_dropout 1.0 must be"),
    ],
)
def test_bad_settings_of_a_translator(
    files, translation_task, tmp_path, changes, message
):
    run = tmp_path / "run"
    with pytest.raises(ValueError, match=message):
        train(translation_task, config_of(files, run, TranslationConfig, **changes))
    assert not run.exists()


def test_the_translation_recipe_runs_without_files(monkeypatch, tmp_path, capsys):
    pytest.importorskip("sacrebleu")
    text = run_without_files(TRANSLATION_RECIPE, monkeypatch, tmp_path / "out", capsys)
    assert "unlabelled: 100 sentences, 3 views" in text and "dev: bleu" in text


def translation_flags(files, tmp_path):
    train, dev = (
        [files[f"{split}_source"], files[f"{split}_target"]]
        for split in ("train", "dev")
    )
    flags = ["--train", *train, "--dev", *dev, "--smoke"]
    return [*flags, "--output", str(tmp_path / "out")]


def test_the_translation_recipe_reads_files(monkeypatch, files, tmp_path, capsys):
    pytest.importorskip("sacrebleu")
    (tmp_path / "bare.en").write_text("The cat sat.\nA dog.\n")
    flags = ["--test", str(tmp_path / "bare.en"), "--max_train", "10"]
    flags += ["--min_count", "1", *translation_flags(files, tmp_path)]
    monkeypatch.setattr("sys.argv", [str(TRANSLATION_RECIPE), *flags])
    runpy.run_path(str(TRANSLATION_RECIPE), run_name="__main__")
    text = capsys.readouterr().out
    assert "labelled:   10 sentences" in text and "learns alone" in text
    lines = (tmp_path / "out" / "predictions" / "test.txt").read_text().splitlines()
    assert len(lines) == 2


def test_the_translation_recipe_refuses_files(monkeypatch, files, tmp_path):
    (tmp_path / "short.de").write_text("Nein.\n")
    flags = translation_flags(files, tmp_path)
    flags[2] = str(tmp_path / "short.de")
    monkeypatch.setattr("sys.argv", [str(TRANSLATION_RECIPE), *flags])
    with pytest.raises(SystemExit, match="Error: .*train.en has 20 lines.*de 1: each"):
        runpy.run_path(str(TRANSLATION_RECIPE), run_name="__main__")
    monkeypatch.setattr("sys.argv", [str(TRANSLATION_RECIPE), *flags[:3], "--smoke"])
    with pytest.raises(SystemExit, match="Error: --train without --dev"):
        runpy.run_path(str(TRANSLATION_RECIPE), run_name="__main__")
