"""Networks that a preset has not stay out of what is saved, until they are trained."""

import json

import pytest

from keras_corrupt.models import Electra
from keras_corrupt.presets.directory import write
from keras_corrupt.training import AdamW


def saved(model, directory):
    """Saves a model; returns what of it is left out."""
    model.save_to_preset(directory)
    content = json.loads((directory / "config.json").read_text())
    untrained = content.get("left_out", [])
    for name in model.networks:
        assert (directory / name).is_dir() == (name not in untrained)
    return untrained


def load(directory, **overrides):
    with pytest.warns(UserWarning, match="has no generator"):
        return Electra.from_preset(directory, **overrides)


def test_a_new_generator_is_left_out_until_it_is_trained(sizes, inputs, tmp_path):
    write(tmp_path / "0", Electra(**sizes), untrained=["generator"])
    model = load(tmp_path / "0")
    assert saved(model, tmp_path / "1") == ["generator"]
    longer = load(tmp_path / "1", discriminator={"max_length": 48})
    assert saved(longer, tmp_path / "2") == ["generator"]

    def train(model):
        model.compile(AdamW(1e-3))
        model.train_on_batch(inputs)

    model.generator.trainable = False
    train(model)
    assert saved(model, tmp_path / "3") == ["generator"]
    model.generator.trainable = True
    train(model)
    assert saved(model, tmp_path / "4") == []
    assert saved(Electra.from_preset(tmp_path / "4"), tmp_path / "5") == []
