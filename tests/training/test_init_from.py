"""`--init_from` a preset that has not all of the model."""

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from keras_corrupt.models import Electra, MaskedLM, Teams, TwoTower, load_preset
from keras_corrupt.models.baselines import Unigram
from keras_corrupt.presets.named_variables import named_weights
from keras_corrupt.training import pretrain
from keras_corrupt.training.callbacks import read_metrics
from tests.training.conftest import ELECTRA, ENCODER

pytestmark = pytest.mark.usefixtures("presets")


@pytest.fixture
def discriminator(finished, tmp_path):
    """A preset without its generator, as discriminators are published."""
    preset = tmp_path / "discriminator"
    shutil.copytree(finished.directory / "preset", preset)
    shutil.rmtree(preset / "generator")
    return preset


def arrays_of(network):
    return {name: np.array(v) for name, v in named_weights(network).items()}


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)


@pytest.mark.usefixtures("graphs")  # where Keras keeps its first program
def test_before_and_after_are_measured_on_the_same_text(config, finished):
    """However many updates are in a call, which a validation has in its batches."""
    start = {"init_from": str(finished.directory / "preset"), "learning_rate": 1e-12}
    pretrain(dataclasses.replace(config, at_once=3, validation_batches=3, **start))
    output = Path(config.output)
    before = json.loads((output / "before.json").read_text())
    for row in read_metrics(output / "metrics.csv"):
        assert row["val_mlm_loss"] == pytest.approx(before["mlm_loss"], rel=1e-5)


def test_a_new_generator_is_trained_first(
    config, finished, discriminator, monkeypatch, capsys
):
    states, fit = [], Electra.fit

    def spied(self, *args, **kwargs):
        states.append((arrays_of(self.generator), arrays_of(self.discriminator)))
        result = fit(self, *args, **kwargs)
        states.append((arrays_of(self.generator), arrays_of(self.discriminator)))
        return result

    monkeypatch.setattr(Electra, "fit", spied)
    # At a rate of nothing the generator stays what it is: bad.
    config = dataclasses.replace(
        config, init_from=str(discriminator), generator_steps=3, learning_rate=1e-9
    )
    pretrain(config)
    assert "(loss" in capsys.readouterr().err.split("no better than")[0]

    config = dataclasses.replace(
        config, learning_rate=1e-2, output=config.output + "_2"
    )
    states.clear()
    model = pretrain(config)
    given = arrays_of(finished.model.discriminator)
    assert model.generator.encoder.hidden_size == 8
    before, after, begun, ended = states[0], states[1], states[-2], states[-1]
    assert_same(before[1], given)
    assert_same(after[1], given)  # with the embeddings that both have
    assert_same(begun[1], given)
    shared = {"encoder/embeddings/token/embeddings"}
    own = finished.model.generator
    for name, array in before[0].items():
        if name in shared:
            np.testing.assert_array_equal(array, arrays_of(own)[name])
            np.testing.assert_array_equal(after[0][name], array)
    kernels = [n for n in before[0] if n.endswith("kernel")]
    for name in kernels:
        assert not np.array_equal(before[0][name], arrays_of(own)[name])
        assert not np.array_equal(before[0][name], after[0][name])
    # Then both learn, and both are saved.
    for name in (n for n in given if n.endswith("kernel")):
        assert not np.array_equal(ended[1][name], given[name])
    saved = load_preset(config.output + "/preset")
    assert_same(arrays_of(saved.generator), arrays_of(model.generator))


def test_what_is_not_there_is_asked_about(config, discriminator, tmp_path):
    config = dataclasses.replace(config, init_from=str(discriminator))
    with pytest.raises(ValueError, match="has no generator for Electra.*--generator_s"):
        pretrain(config)
    wrong = dataclasses.replace(config, generator_steps=6)
    with pytest.raises(ValueError, match="6 must be fewer than --steps 6"):
        pretrain(wrong)
    wrong = dataclasses.replace(config, generator_steps=2, model="MaskedLM")
    with pytest.raises(ValueError, match="names generator.*MaskedLM has masked_lm"):
        pretrain(wrong)
    # Damage is no absence.
    (discriminator / "discriminator" / "model.safetensors").unlink()
    with pytest.raises(ValueError, match="larger than the weights that are saved"):
        pretrain(dataclasses.replace(config, generator_steps=0))
    assert not (tmp_path / "run").exists()


class Started(Exception):
    """Training would begin."""


def started(config, monkeypatch):
    found = []

    def fit(self, *args, **kwargs):
        found.append(self)
        raise Started

    with monkeypatch.context() as patch:
        patch.setattr(config.model_class, "fit", fit)
        with pytest.raises(Started):
            pretrain(config)
    return found[0]


@pytest.mark.parametrize("source, target", [("Electra", "MaskedLM"), (0, "Electra")])
def test_another_systems_encoder(
    config, finished, tmp_path, monkeypatch, source, target
):
    preset = finished.directory / "preset"
    if not source:
        preset = tmp_path / "preset"
        tokenizer = finished.model.tokenizer
        MaskedLM(ENCODER, tokenizer=tokenizer).save_to_preset(preset)
    config = dataclasses.replace(
        config,
        model=target,
        init_from=str(preset),
        generator_steps=None if source else 0,
    )
    model = started(config, monkeypatch)
    assert type(model).__name__ == target
    assert_same(arrays_of(model.encoder), arrays_of(load_preset(preset).encoder))
    assert model.tokenizer.fingerprint == finished.model.tokenizer.fingerprint
    assert model.masker.mask_rate == 0.2  # the run's option


def test_a_system_of_other_embeddings_cannot_start_another(config, finished, tmp_path):
    MaskedLM(ENCODER, tokenizer=finished.model.tokenizer).save_to_preset(tmp_path / "p")
    config = dataclasses.replace(
        config,
        init_from=str(tmp_path / "p"),
        generator_steps=0,
        objective={"tied_embeddings": "gradient_disentangled"},
    )
    with pytest.raises(ValueError, match="gradient_disentangled: --init_from .*Masked"):
        pretrain(config)


def test_sizes_that_do_not_fit_together_show_first(config, finished, tmp_path):
    config = dataclasses.replace(
        config,
        model="Teams",
        preset="base",
        objective={},
        init_from=str(finished.directory / "preset"),
        generator_steps=0,
        data=None,
        corpus=("python-docs",),
    )
    with pytest.raises(ValueError, match="_layers` must be from 0 to 1"):
        pretrain(config)
    assert not (tmp_path / "run").exists()


def test_a_system_without_an_encoder_cannot_start_another(
    config, finished, tmp_path, monkeypatch
):
    model = TwoTower(ENCODER, tokenizer=finished.model.tokenizer)
    model.save_to_preset(tmp_path / "towers")
    config = dataclasses.replace(
        config, model="MaskedLM", init_from=str(tmp_path / "towers")
    )
    with pytest.raises(ValueError, match="TwoTower has two towers.*no `encoder`"):
        pretrain(config)
    config = dataclasses.replace(
        config, init_from=str(finished.directory / "preset"), preset="huge"
    )
    with pytest.raises(ValueError, match="an encoder of Electra.*one of tiny, .*huge"):
        pretrain(config)
    assert not (tmp_path / "run").exists()


def test_warns_of_a_generator_too_good_or_too_bad(sizes):
    discriminator = sizes["discriminator"]
    rest = {k: sizes[k] for k in ("mask_id", "unmaskable_ids")}
    metrics = {"mlm_loss": 3.0, "sampled_accuracy": 0.3, "replaced_fraction": 0.1}
    metrics |= {"rtd_auc": 0.5, "rtd_recall": 0.0}
    for model in (Electra(**sizes), Teams(discriminator, generator_layers=1, **rest)):

        def warned(model=model, **changes):
            found = model.objectives.warnings(
                metrics | changes, Unigram(5.0, 0.05), networks=("generator",)
            )
            return [text.split("(")[0] for text in found]

        assert warned() == []  # of the discriminator nothing is said yet
        assert "restores most tokens" in warned(sampled_accuracy=0.9)[0]
        assert warned(mlm_loss=5.5) == ["the masked language model "]
        everything = model.objectives.warnings(
            metrics | {"mlm_loss": 5.5}, Unigram(5.0, 0.05)
        )
        assert len([*everything]) == 2


@pytest.mark.parametrize("model", ["Electra", "MaskedLM"])
def test_sizes_that_its_weights_have_not(config, finished, tmp_path, model):
    preset = str(finished.directory / "preset")
    main = "encoder" if model == "MaskedLM" else "discriminator"
    sizes = [("num_layers", 2), ("hidden_size", 32), ("max_length", 33)]
    trained = ENCODER | {"norm": "post"}
    for name, value in [*sizes, ("norm", "pre")]:
        wrong = dataclasses.replace(
            config, model=model, init_from=preset, objective={main: {name: value}}
        )
        had = f"{name}={trained[name]}"
        message = f"--{main}.{name} {value}: .* {preset} are of {had}. Leave it out"
        with pytest.raises(ValueError, match=message):
            pretrain(wrong)
    assert not (tmp_path / "run").exists()


def test_another_systems_encoder_can_read_longer_texts(config, finished, monkeypatch):
    config = dataclasses.replace(
        config,
        model="MaskedLM",
        init_from=str(finished.directory / "preset"),
        objective={"encoder": {"max_length": 90}},
    )
    model = started(config, monkeypatch)
    table = np.array(model.encoder.embeddings.position.embeddings)
    old = np.array(finished.model.encoder.embeddings.position.embeddings)
    np.testing.assert_array_equal(table, np.concatenate([old, old, old[:10]]))


def test_a_preset_without_a_tokenizer_needs_its_vocabulary(
    config, finished, corpus, tmp_path, monkeypatch
):
    tokenizer = finished.model.tokenizer
    bare = Electra(**ELECTRA)
    assert bare.mask_id != tokenizer.mask_id
    bare.save_to_preset(tmp_path / "bare")
    config = dataclasses.replace(config, init_from=str(tmp_path / "bare"))
    found = started(config, monkeypatch)
    assert found.tokenizer.fingerprint == tokenizer.fingerprint
    assert found.mask_id == tokenizer.mask_id
    assert tokenizer.separate_id in found.unmaskable_ids
    raw = dataclasses.replace(
        config, data=None, corpus=(corpus,), output=config.output + "_2"
    )
    with pytest.raises(ValueError, match="bare has no tokenizer. Give .* --vocabulary"):
        pretrain(raw)
    sizes = {**ENCODER, "vocabulary_size": 10}
    MaskedLM(sizes, mask_id=4, unmaskable_ids=(0,)).save_to_preset(tmp_path / "small")
    small = dataclasses.replace(
        raw, model="MaskedLM", init_from=str(tmp_path / "small"), data=config.data
    )
    with pytest.raises(ValueError, match="small knows 10 tokens, and the vocabulary"):
        pretrain(small)


def test_a_preset_that_describes_no_encoder_is_refused(config, discriminator):
    path = discriminator / "config.json"
    content = json.loads(path.read_text())
    del content["config"]["discriminator"]
    path.write_text(json.dumps(content))
    for model in ("Electra", "MaskedLM"):
        changed = dataclasses.replace(
            config, model=model, objective={}, init_from=str(discriminator)
        )
        with pytest.raises(ValueError, match="not describe Electra's discriminator"):
            pretrain(changed)
