"""Adapting a preset to a domain, from the command line, in miniature."""

import csv
import json
import os
import runpy
from pathlib import Path

import keras
import pytest

from keras_corrupt.data.pipeline import make_dataset
from keras_corrupt.downstream.kept_results import fingerprint
from keras_corrupt.evaluation.adaptation import AdaptationConfig, of_preset
from keras_corrupt.models import Electra, TwoTower
from keras_corrupt.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer
from keras_corrupt.training.callbacks import read_metrics, validate
from tests.conftest import SIZES
from tests.downstream.conftest import cats_and_dogs

RECIPE = Path(__file__).parents[2] / "recipes" / "adapt_to_domain.py"


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    keras.utils.set_random_seed(0)
    words = "the a cat dog sat ran on under mat rug".split()
    tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, *words])
    sizes = {"vocabulary_size": tokenizer.vocabulary_size, "initializer_range": 0.2}
    model = Electra(
        {**SIZES["discriminator"], **sizes}, SIZES["generator"], tokenizer=tokenizer
    )
    directory = tmp_path_factory.mktemp("preset") / "preset"
    model.save_to_preset(directory)
    return str(directory)


@pytest.fixture
def run(monkeypatch, tmp_path, preset):
    def run_recipe(*flags):
        flags = ["--init_from", preset, "--output", tmp_path / "run", *flags]
        flags += ["--sequence_length", 16, "--batch_size", 16, "--steps", 60]
        flags += ["--learning_rate", 0.01, "--warmup_steps", 5, "--interval", 30]
        flags += ["--validation_fraction", 0.2, "--workers", 1]
        monkeypatch.setattr("sys.argv", [str(RECIPE), *map(str, flags)])
        runpy.run_path(str(RECIPE), run_name="__main__")

    return run_recipe


def write(path, text, documents=80):
    path.write_text("\n\n".join([f"{text}\n{text}"] * documents))
    return path


def write_table(path, seed):
    split = cats_and_dogs(40, seed)
    with open(path, "w", newline="") as file:
        rows = zip(split.examples, split.labels, strict=True)
        csv.writer(file).writerows([("text", "animal"), *rows])


def test_before_and_after(run, tmp_path, preset, capsys):
    domain = write(tmp_path / "domain.txt", "the cat sat under the rug")
    old = write(tmp_path / "old.txt", "a dog ran on a mat", 40)
    write_table(tmp_path / "train.csv", 0)
    write_table(tmp_path / "dev.csv", 1)
    task = ["--task", tmp_path / "train.csv", tmp_path / "dev.csv"]
    task += ["--label", "animal", "--seeds", 1, "--settings", "epochs", 1]
    mix = ["--mix", old, 0]
    run("--corpus", domain, *mix, *task, "--dtype", "auto")
    printed = capsys.readouterr().out

    # What was before is the preset's, measured here.
    directory = tmp_path / "run"
    before, after = (
        json.loads((directory / f"{name}.json").read_text())
        for name in ("before", "after")
    )
    model = Electra.from_preset(preset, seed=0)
    model.compile("sgd", jit_compile=False)
    for prefix, data in (("", "data"), ("mix_1_", "mix_1")):
        held_out = make_dataset(
            directory / data, "validation", batch_size=16, max_length=16
        )
        expected = validate(model, held_out)["val_mlm_loss"]
        assert before[f"{prefix}mlm_loss"] == pytest.approx(expected, rel=1e-3)
    # The domain is learned, from whose words the old text's are told apart.
    assert after["mlm_loss"] < before["mlm_loss"] - 0.5
    assert after["mlm_loss"] < after["mix_1_mlm_loss"]
    row = read_metrics(directory / "metrics.csv")[-1]
    assert row["val_mlm_loss"] == pytest.approx(after["mlm_loss"], rel=1e-5)

    table = printed.split("\nvalidation ")[1:]
    assert len(table) == 2 and table[1].startswith(f"on {old}\n")
    assert table[0].split("\n")[0].split() == ["before", "model", "baseline"]
    for part, prefix in zip(table, ("", "mix_1_"), strict=True):
        shown = part.split("masked LM loss (nats)")[1].split()[:2]
        assert shown == [f"{m[f'{prefix}mlm_loss']:.3f}" for m in (before, after)]

    results = {
        name: json.loads((directory / "task" / name / "results.json").read_text())
        for name in ("before", "after")
    }
    scores = printed.split("accuracy, the median of 1:\n")[1].splitlines()
    fine_tuned = {}
    for line, (name, (row,)) in zip(scores[:2], results.items(), strict=True):
        (result,) = row["results"]
        shown = f"{result['score']:.1f}"
        assert line.split() == [name, shown, f"({shown})"]
        fine_tuned[name] = result["settings"]["preset"]
    # The task is learned from the preset that was, and from the one that was trained.
    assert fine_tuned == {
        "before": fingerprint(preset),
        "after": fingerprint(directory / "preset"),
    }
    assert len(set(fine_tuned.values())) == 2


def test_what_is_wrong_shows_before_training(run, tmp_path, preset):
    domain = write(tmp_path / "domain.txt", "the cat sat")

    def refused(*flags):
        with pytest.raises(SystemExit) as caught:
            run("--corpus", domain, *flags)
        assert not (tmp_path / "run").exists()
        return str(caught.value.code)

    assert "absent.csv" in refused("--task", "absent.csv")
    assert "at most one more" in refused("--task", "a.csv", "b.csv", "c.csv")
    assert "is not a directory that save" in refused("--init_from", tmp_path)
    other = refused("--tokenizer", "unigram")
    assert "--tokenizer unigram: --init_from" in other and "of its own" in other
    towers = TwoTower(
        SIZES["discriminator"], tokenizer=Electra.from_preset(preset).tokenizer
    )
    towers.save_to_preset(tmp_path / "towers")
    write_table(tmp_path / "train.csv", 0)
    task = ["--task", tmp_path / "train.csv", "--label", "animal"]
    towers = refused(*task, "--init_from", tmp_path / "towers")
    assert "TwoTower has two towers" in towers
    assert "--seeds 0 must be at least 1" in refused(*task, "--seeds", 0)
    assert "there is no setting rate" in refused(*task, "--settings", "rate", 1)


def test_the_presets_model_is_found_without_start_up_lines(monkeypatch, preset):
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    recipe = AdaptationConfig(model="Teams", preset="tiny", output="unused")
    assert of_preset(recipe, ["--init_from", preset]).model == "Electra"
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "3"
