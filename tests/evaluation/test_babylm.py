"""BabyLM's recipe, in miniature: words become updates, marks become models."""

import dataclasses
import runpy
from pathlib import Path

import pytest

from keras_corrupt.data.info import load_dataset_info, save_dataset_info
from keras_corrupt.evaluation.babylm import BabyLMConfig, babylm, with_steps
from keras_corrupt.models import Electra
from keras_corrupt.presets import load_preset
from keras_corrupt.training.callbacks import read_metrics
from tests.conftest import SIZES, without_graphs

RECIPE = Path(__file__).parents[2] / "recipes" / "babylm_strict_small.py"


@pytest.fixture
def train_10m(tmp_path):
    """The challenge's files, of 80 documents of 18 words each."""
    folder = tmp_path / "train_10M"
    folder.mkdir()
    for animal in ("cat", "dog"):
        text = f"the {animal} sat\non the mat under\na rug"
        (folder / f"{animal}.train").write_text("\n\n".join([f"{text}\n{text}"] * 40))
    return folder


def test_a_run_by_words(train_10m, tmp_path, monkeypatch, capsys):
    sizes = {"discriminator": {**SIZES["discriminator"], "vocabulary_size": 60}}
    monkeypatch.setitem(Electra.presets, "modern_tiny", {**SIZES, **sizes})
    output = tmp_path / "run"
    flags = {"corpus": train_10m, "output": output, "words": 400, "mark": 200}
    flags |= {"corpus_words": 1000, "vocabulary_size": 60, "validation_fraction": 0.1}
    flags |= {"sequence_length": 16, "batch_size": 4, "workers": 1}
    words = [word for name, value in flags.items() for word in (f"--{name}", value)]
    monkeypatch.setattr("sys.argv", [str(RECIPE), *map(str, words)])
    with without_graphs():
        runpy.run_path(str(RECIPE), run_name="__main__")
    train = load_dataset_info(f"{output}_data").train
    interval = round(200 / (train.words / train.examples * 4))
    steps = [row["step"] for row in read_metrics(output / "metrics.csv")]
    assert steps == [interval, 2 * interval]
    kept = sorted(int(path.name[5:]) for path in (output / "presets").iterdir())
    assert kept == steps
    exported = {path.name for path in (output / "hugging_face").iterdir()}
    assert exported == {"chck_200", "chck_400"}
    first = output / "hugging_face" / "chck_200"
    assert (first / "generator" / "config.json").exists()
    assert type(load_preset(output / "preset")) is Electra
    printed = capsys.readouterr()
    assert "The corpus has 1,440 words," in printed.out
    assert "the track allows 1,000" in printed.err


def test_the_marks_of_the_rules_are_kept():
    config = BabyLMConfig("Electra", "tiny", "run", interval=7)
    kept = [step // 7 for step in range(1, 7 * 301) if config.keeps(step)]
    assert kept == [*range(1, 11), *range(20, 101, 10), 200, 300]


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"fill_rows": True}, "--fill_rows: leave it out, or nobody knows a step's"),
        ({"mix": (("old.txt", 0.1),)}, "--mix: leave it out, or nobody knows a step's"),
        ({"steps": 10}, "--steps: leave it out, --words and --mark decide it"),
        (
            {"words": 1500, "mark": 1000},
            "must be a multiple of --mark 1000",
        ),
        ({"mark": 0}, "--mark 0 must be"),
        ({"sequence_length": 4096}, "--sequence_length 4096 is longer than"),
    ],
)
def test_nothing_is_read_for_settings_that_cannot_be(settings, message, tmp_path):
    config = BabyLMConfig("Electra", "tiny", str(tmp_path / "run"), ("missing.txt",))
    with pytest.raises(ValueError, match=message):
        with_steps(dataclasses.replace(config, **settings))


def test_a_model_that_could_not_be_exported_is_not_trained(prepared, tmp_path):
    networks = {"discriminator": {"norm": "pre"}, "generator": {"norm": "pre"}}
    data, output = str(prepared.directory), tmp_path / "run"
    config = BabyLMConfig(
        *("Electra", "tiny", str(output)), data=data, words=100, mark=100
    )
    config = dataclasses.replace(config, sequence_length=32, objective=networks)
    with pytest.raises(ValueError, match="no counterpart in Hugging Face"):
        babylm(config)
    assert not output.exists()


def test_examples_whose_words_were_not_counted(prepared, tmp_path):
    config = BabyLMConfig("Electra", "tiny", str(tmp_path), data=str(tmp_path))
    train = dataclasses.replace(prepared.train, words=None)
    save_dataset_info(dataclasses.replace(prepared, directory=tmp_path, train=train))
    with pytest.raises(ValueError, match="counted no words. Prepare them again"):
        with_steps(config)
