import sys

import pytest

from keras_corrupt import downstream
from keras_corrupt.encoders import TextModel, TransformerEncoder
from keras_corrupt.models import (
    AdversarialElectra,
    AllTokensMLM,
    CocoLM,
    Electra,
    ElectraTT,
    Electric,
    MaskedLM,
    Pretrainer,
    ReplaceMLM,
    Teams,
    TwoTower,
    UnigramElectra,
)
from keras_corrupt.models.options import check_options, options_of
from keras_corrupt.presets.registry import (
    find_class,
    import_class,
    registered_name,
)
from tests.conftest import SIZES

#: What data, runner and networks decide.
DECIDED = {"vocabulary_size", "max_length", "mask_id", "unmaskable_ids", "seed"}
DECIDED |= {"tokenizer", "name", "dtype"}


@pytest.mark.parametrize(
    "system",
    [
        *(AdversarialElectra, AllTokensMLM, CocoLM, Electra, ElectraTT, Electric),
        *(MaskedLM, ReplaceMLM, Teams, TwoTower, UnigramElectra),
    ],
)
def test_every_argument_of_a_system_and_of_its_encoders_is_an_option(system):
    options = options_of(system)
    model = system.from_preset("tiny")
    assert set(options) == set(model.get_config()) - DECIDED
    for network in system.network_arguments:
        config = TransformerEncoder(**SIZES["discriminator"]).architecture
        assert set(options[network]) == set(config) - {"vocabulary_size", "padding_id"}


def test_options_say_what_they_are():
    options = options_of(Electra)
    assert options["rtd_weight"][:2] == (float, 50.0)
    assert "50 is the released code's" in options["rtd_weight"].text
    assert options["discriminator"]["attention_dropout"][:2] == (float, 0.1)
    assert options["keep_rate"].text.endswith("0.15 in the released code.")


def test_options_change_the_model(sizes):
    sizes["discriminator"] |= {"attention_dropout": 0.3, "approximate_gelu": True}
    model = Electra(**sizes, rtd_weight=7.0)
    assert model.encoder.layers_[0].attention.dropout.rate == 0.3
    assert model.encoder.layers_[0].approximate_gelu
    assert model.loss_weights == {"mlm": 1.0, "rtd": 7.0}
    assert Electra.from_config(model.get_config()).loss_weights["rtd"] == 7.0


@pytest.mark.parametrize(
    "given, message",
    [
        (
            {"rtd_wieght": 1},
            "Electra has no option 'rtd_wieght'. The nearest are rtd_w",
        ),
        ({"qqq": 1}, "'qqq'. It has discriminator, disjoint_masks, "),
        ({"generator": {"num_layer": 1}}, "nearest are generator.num_layers"),
        ({"generator": 12}, "'generator' of Electra is a network: give a dict"),
        ({"vocabulary_size": 12}, "no option 'vocabulary_size'"),
    ],
)
def test_unknown_options_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        check_options(Electra, given)
    check_options(Electra, {"mask_rate": 0.2, "generator": {"num_layers": 3}})


def test_loss_weights_cannot_be_negative():
    with pytest.raises(ValueError, match="`rtd_weight` must be at least 0; got -1"):
        Electra(**SIZES, rtd_weight=-1)


def test_classes_by_name():
    assert find_class("Teams", Pretrainer) is Teams
    assert find_class(registered_name(Teams), Pretrainer) is Teams
    assert find_class("TokenTagger", TextModel) is downstream.TokenTagger
    assert import_class("Teams", Pretrainer) is Teams
    assert import_class("keras_corrupt.models:Electra", Pretrainer) is Electra
    for name in ("Nothing", "os:path", "keras_corrupt.models:Absent", "a b:c"):
        with pytest.raises(ValueError, match=name.partition(":")[0]):
            import_class(name, Pretrainer)


def test_a_module_of_the_working_directory_is_found(tmp_path, monkeypatch):
    """Also by an installed command, whose path does not have the directory."""
    (tmp_path / "my_system.py").write_text("from keras_corrupt.models import Teams")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [path for path in sys.path if path])
    assert import_class("my_system:Teams", Pretrainer) is Teams


def test_the_name_in_a_file_imports_nothing(tmp_path, monkeypatch):
    (tmp_path / "hostile.py").write_text("raise SystemExit('executed')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match="none of the known classes"):
        find_class("hostile:Own", Pretrainer)
