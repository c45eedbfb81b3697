"""One door to all that can be loaded."""

import pytest

from keras_corrupt import models
from keras_corrupt.downstream import TextClassifier
from keras_corrupt.models import Electra
from keras_corrupt.presets import Preset, load_preset, locations
from tests.conftest import SIZES


@pytest.fixture
def electra(tokenizer):
    sizes = {**SIZES["discriminator"], "vocabulary_size": 60}
    return Electra(sizes, SIZES["generator"], mask_rate=0.2, tokenizer=tokenizer)


def test_it_is_known_before_any_network_is_made(electra, tmp_path, monkeypatch):
    electra.save_to_preset(tmp_path / "p")
    monkeypatch.setattr(Electra, "__init__", None)
    preset = Preset.open(tmp_path / "p")
    assert (preset.model_class, preset.main) == (Electra, "discriminator")
    assert preset.config["mask_rate"] == 0.2
    assert preset.encoder["vocabulary_size"] == 60
    assert preset.tokenizer.fingerprint == electra.tokenizer.fingerprint
    assert preset.has("generator") and not preset.has("encoder")


def test_what_reads_text_is_loaded_pretrained_or_fine_tuned(electra, tmp_path):
    electra.save_to_preset(tmp_path / "p")
    classifier = TextClassifier.from_preset(tmp_path / "p", labels=["a", "b"])
    classifier.save_to_preset(tmp_path / "q")
    assert type(models.load_preset(tmp_path / "p")) is Electra
    assert type(models.load_preset(tmp_path / "q")) is TextClassifier
    with pytest.raises(ValueError, match="'TextClassifier' is none of the known"):
        load_preset(tmp_path / "q", models.Pretrainer)


def test_a_source_makes_a_preset_of_something_else(electra, tmp_path, monkeypatch):
    class Shelf:
        def recognises(self, name):
            return str(name).startswith("shelf://")

        def preset_of(self, name):
            electra.save_to_preset(tmp_path / "made")
            return tmp_path / "made"

    monkeypatch.setattr(locations, "_SOURCES", [])
    with pytest.raises(ValueError, match="Unknown preset 'shelf://one'.*tiny_en"):
        Preset.open("shelf://one")
    locations.register_source(Shelf())
    assert Preset.open("shelf://one").directory == tmp_path / "made"
