"""A trained preset is known by its name wherever a directory is."""

import ast
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from keras_corrupt import models
from keras_corrupt.downstream import TextClassifier
from keras_corrupt.downstream.kept_results import fingerprint
from keras_corrupt.models import Electra
from keras_corrupt.training import PretrainConfig, starting

SETUP = Path(__file__).parents[2] / "setup.py"


@pytest.fixture
def model(tmp_path, sizes, tokenizer, monkeypatch):
    sizes["discriminator"] |= {"vocabulary_size": 60, "initializer_range": 0.5}
    model = Electra(**sizes, tokenizer=tokenizer)
    directory = tmp_path / "presets" / "electra" / "made_up"
    model.save_to_preset(directory, dtype="float16")
    monkeypatch.setattr(Electra, "trained_presets", {"made_up": directory})
    return model


def test_half_the_precision_is_loaded_as_the_models_own(model, inputs):
    path = Electra.trained_presets["made_up"] / "discriminator" / "model.safetensors"
    assert {array.dtype for array in load_file(path).values()} == {np.dtype("float16")}
    loaded = Electra.from_preset("made_up")
    assert {variable.dtype for variable in loaded.trainable_variables} == {"float32"}
    for a, b in zip(model.trainable_variables, loaded.trainable_variables, strict=True):
        rounded = np.array(a).astype("float16").astype("float32")
        np.testing.assert_array_equal(rounded, np.array(b))


def test_the_name_is_known_to_all_that_load(model):
    assert isinstance(models.load_preset("made_up"), Electra)
    classifier = TextClassifier.from_preset("made_up", labels=["a", "b"])
    assert classifier.pretrained_by == "Electra"
    assert fingerprint("made_up") == fingerprint(Electra.trained_presets["made_up"])


def test_a_run_starts_from_it_with_its_vocabulary(model, prepared, tmp_path):
    config = PretrainConfig(
        model="Electra",
        preset="tiny",
        output=str(tmp_path),
        init_from="made_up",
        data=str(prepared.directory),
        sequence_length=16,
    )
    with pytest.raises(ValueError, match="--init_from made_up.*made_up/tokenizer.json"):
        starting.prepare(config, tmp_path)


def test_an_unknown_name_lists_the_trained(model):
    for cls in (Electra, TextClassifier):
        with pytest.raises(ValueError, match="'huge'.*'base'.*'made_up'"):
            cls.from_preset("huge")


def test_a_wheel_has_every_file_of_a_trained_preset(model, tmp_path):
    patterns = next(
        node.value
        for node in ast.walk(ast.parse(SETUP.read_text()))
        if isinstance(node, ast.keyword) and node.arg == "package_data"
    )
    patterns = ast.literal_eval(patterns)["keras_corrupt.presets"]
    package = tmp_path / "presets"
    (package / "electra" / "made_up" / "README.md").write_text("The card.")
    found = {path for pattern in patterns for path in package.glob(pattern)}
    assert found == {path for path in package.rglob("*") if path.is_file()}
