"""The command, its check, and addresses of hubs."""

import shutil
import sys
from pathlib import Path

import huggingface_hub
import kagglehub
import keras
import numpy as np
import pytest

from keras_corrupt import models
from keras_corrupt.convert import __main__, card, check, hubs, keras_hub
from keras_corrupt.convert.conversion import convert
from keras_corrupt.convert.options import Options
from keras_corrupt.models import MaskedLM, TwoTower
from tests.conftest import SIZES, own_system
from tests.convert.conftest import assert_same_weights

THEIRS = Path(__file__).parents[1] / "fixtures" / "hugging_face"


@pytest.fixture
def run(monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["convert", *map(str, arguments)])
        __main__.main()
        return capsys.readouterr().out

    return run


def test_it_writes_and_checks(run, electra, tmp_path):
    electra.save_to_preset(tmp_path / "ours")
    for to in ("keras_hub", "model_garden"):
        flags = ("--to", to, "--approximate_gelu", "True")
        printed = run(tmp_path / "ours", tmp_path / to, *flags)
        difference = float(printed.split("differ by ")[1].split()[0])
        assert difference < 1e-5
    printed = run(THEIRS / "electra", tmp_path / "preset")
    assert printed == f"{tmp_path / 'preset'}: Electra as keras_corrupt\n"


def test_it_says_what_is_wrong_in_one_line(run, tmp_path):
    with pytest.raises(SystemExit, match="Error: .*nowhere") as error:
        run(tmp_path / "nowhere", tmp_path / "target")
    assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())


def test_the_check_finds_what_differs(electra, tmp_path):
    made = {}

    class Format:
        outputs = staticmethod(lambda directory, inputs: made)

    inputs = check.make_inputs(electra.encoder)
    made |= check.outputs(electra, inputs, Options())
    assert made.keys() == {"hidden", "mlm", "rtd"}
    assert check.check(electra, tmp_path, Format, Options()) == 0
    made["rtd"] = made["rtd"] + (np.arange(16) < 3) * 1e-3
    with pytest.raises(ValueError, match="another rtd"):
        check.check(electra, tmp_path, Format, Options())
    made["rtd"] = made["rtd"] * np.nan
    with pytest.raises(ValueError, match="another rtd"):
        check.check(electra, tmp_path, Format, Options())


def test_what_does_not_compute_the_same_is_not_kept(electra, tmp_path, monkeypatch):
    electra.save_to_preset(tmp_path / "ours")
    monkeypatch.setattr(
        keras_hub, "outputs", lambda d, x: {"hidden": np.zeros((2, 16, 16))}
    )
    with pytest.raises(ValueError, match="another hidden"):
        convert(
            tmp_path / "ours",
            tmp_path / "theirs",
            "keras_hub",
            approximate_gelu=True,
            check=True,
        )
    assert [path.name for path in tmp_path.iterdir()] == ["ours"]


def test_a_model_of_half_precision_is_checked_in_whole(tokenizer, tmp_path):
    encoder = SIZES["discriminator"] | {"vocabulary_size": 60}
    model = MaskedLM(
        {**encoder, "approximate_gelu": True, "initializer_range": 0.4},
        tokenizer=tokenizer,
        dtype="mixed_bfloat16",
    )
    model.save_to_preset(tmp_path / "ours")
    made = convert(tmp_path / "ours", tmp_path / "theirs", "keras_hub", check=True)
    assert made.difference < 1e-5
    convert(tmp_path / "ours", tmp_path / "again")
    again = models.load_preset(tmp_path / "again")
    assert again.dtype_policy.name == "mixed_bfloat16"


def test_a_generator_that_is_none_is_refused(electra, tmp_path):
    electra.save_to_preset(tmp_path / "ours")
    for source, generator, why in (
        (THEIRS / "electra", tmp_path, "holds no config.json"),
        (tmp_path / "ours", THEIRS / "electra" / "generator", "and .*ours is none"),
        (THEIRS / "bert", THEIRS / "electra" / "generator", "and .*bert is none"),
    ):
        with pytest.raises(ValueError, match=f"generator=.*{why}"):
            convert(source, tmp_path / "target", generator=str(generator))
    assert [path.name for path in tmp_path.iterdir()] == ["ours"]


def test_cards_of_models_of_any_kind(tokenizer, monkeypatch):
    encoder = SIZES["discriminator"] | {"vocabulary_size": 60}
    towers = TwoTower(encoder, tokenizer=tokenizer)
    text = card.model_card(towers, Path("run/preset"), "keras_corrupt", "towers")
    assert "Made by `keras_corrupt.models.TwoTower`" in text and "The model has" in text
    monkeypatch.delattr(TwoTower, "encoder")  # as of a system that defines none
    again = card.model_card(towers, Path("run/preset"), "keras_corrupt", "towers")
    assert again == text
    monkeypatch.setattr(MaskedLM, "__module__", "mine")
    model = MaskedLM(encoder, tokenizer=tokenizer)
    text = card.model_card(model, Path("run/preset"), "keras_corrupt", "own")
    assert "Made by `mine.MaskedLM`" in text and "The encoder has 1 layers" in text
    monkeypatch.setattr(keras.Sequential, "__module__", "keras_corrupt.cross_view.x")
    other = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    text = card.model_card(other, Path("run/preset"), "keras_corrupt", "tagger")
    assert "\nkeras_corrupt.cross_view.Sequential.from_preset(directory)\n" in text


def test_a_system_of_ones_own_is_named(electra, run, tmp_path, monkeypatch):
    electra.save_to_preset(tmp_path / "own")
    system = own_system(tmp_path / "own", "own_system")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="none of the known classes"):
        run("own", "theirs", "--to", "hugging_face")
    run("own", "theirs", "--to", "hugging_face", "--system", system)
    back = models.load_preset(tmp_path / "theirs")
    assert_same_weights(back.encoder, electra.encoder)


def test_hubs_are_asked(electra, tmp_path, monkeypatch):
    asked = []

    def snapshot_download(name, revision, allow_patterns):
        asked.append((name, revision, "pytorch_model.bin" in allow_patterns))
        return str(THEIRS / {"a/both": "electra", "a/old": "."}[name])

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    model = models.load_preset("hf://a/both@v1")
    assert_same_weights(
        model.generator, models.load_preset(THEIRS / "electra").generator
    )
    assert hubs.local_copy("hf://a/old") == THEIRS
    assert asked == [("a/both", "v1", False), ("a/old", None, False)] + [
        ("a/old", None, True)
    ]
    monkeypatch.setattr(kagglehub, "model_download", lambda name: f"/{name}")
    assert hubs.local_copy("kaggle://keras/electra/keras/x") == Path(
        "/keras/electra/keras/x"
    )


def test_offline_their_cache_is_read(tmp_path, monkeypatch):
    constants = huggingface_hub.constants
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    folder = tmp_path / "models--owner--electra"
    shutil.copytree(THEIRS / "electra", folder / "snapshots" / ("a" * 40))
    (folder / "refs").mkdir()
    for name in ("main", "v1"):
        (folder / "refs" / name).write_text("a" * 40)
    expected = models.load_preset(THEIRS / "electra")
    for address in ("hf://owner/electra", "hf://owner/electra@v1"):
        model = models.load_preset(address)
        assert_same_weights(model.discriminator, expected.discriminator)
        assert_same_weights(model.generator, expected.generator)
    for address in ("hf://owner/other", "hf://owner/electra@v2", "hf://../../etc"):
        with pytest.raises(ValueError, match=f"{address} cannot be.*a copy") as error:
            models.load_preset(address)
        assert "\n" not in str(error.value)


def test_offline_the_remedy_is_named(monkeypatch):
    def fails(*args, **kwargs):
        raise huggingface_hub.errors.LocalEntryNotFoundError("No network.\nMore.")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fails)
    with pytest.raises(ValueError, match="hf://a/b .*No network. .*a copy") as error:
        models.load_preset("hf://a/b")
    assert "\n" not in str(error.value)
    monkeypatch.setitem(sys.modules, "kagglehub", None)
    with pytest.raises(ValueError, match="pip install kagglehub"):
        models.load_preset("kaggle://a/b/c/d")
