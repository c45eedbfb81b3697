"""Runs begun and presets saved by version 0.1.0.dev0 go on: fixtures/version_1."""

import json
import shutil
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_corrupt import models
from keras_corrupt.downstream import TextClassifier
from keras_corrupt.models import Electra, MaskedLM, Teams, load_preset
from keras_corrupt.training import (
    Checkpoints,
    PretrainConfig,
    numbered_variables,
    pretrain,
)
from keras_corrupt.training.callbacks import read_metrics
from tests.fixtures.record_version_1 import CONFIG, SIZES

FIXTURES = Path(__file__).parents[1] / "fixtures" / "version_1"
SYSTEMS = [MaskedLM, Electra, Teams]
every_system = pytest.mark.parametrize("system", SYSTEMS, ids=lambda s: s.__name__)


@every_system
def test_a_preset_gives_the_same_outputs(system):
    model = load_preset(FIXTURES / f"{system.__name__}-preset")
    assert type(model) is system
    with np.load(FIXTURES / f"{system.__name__}-outputs.npz") as archive:
        expected = dict(archive)
    names = ("token_ids", "segment_ids", "padding_mask")
    inputs = {name: expected.pop(name) for name in names}
    positions = expected.pop("positions")
    network = model.network if system is MaskedLM else model.generator
    found = {"hidden": model.encoder(inputs), "logits": network(inputs, positions)}
    if system is not MaskedLM:
        found["replaced"] = model.discriminator(inputs)
    for name, array in found.items():
        array = keras.ops.convert_to_numpy(array)
        np.testing.assert_allclose(array, expected[name], atol=1e-5, err_msg=name)


def test_a_fine_tuned_preset_gives_the_same_probabilities():
    classifier = TextClassifier.from_preset(str(FIXTURES / "TextClassifier-preset"))
    with np.load(FIXTURES / "Electra-outputs.npz") as archive:
        expected = archive["probabilities"]
    found = classifier.probabilities(["the cat sat", "a dog"])
    np.testing.assert_allclose(found, expected, atol=1e-5)


def run_directory(system, tmp_path, monkeypatch):
    """A copy of the run that was stopped after three of six steps."""
    backend = keras.backend.backend()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(system.presets, "tiny", SIZES[system])
    shutil.copytree(FIXTURES / "data", "data")
    shutil.copytree(FIXTURES / f"{system.__name__}-{backend}-run", "run")
    return PretrainConfig(model=system.__name__, output="run", **CONFIG)


@every_system
def test_a_run_goes_on(system, tmp_path, monkeypatch, capsys):
    config = run_directory(system, tmp_path, monkeypatch)
    model = pretrain(config)
    assert "Continuing at step 3." in capsys.readouterr().out
    rows = read_metrics(Path("run/metrics.csv"))
    assert [row["step"] for row in rows] == [3, 6]
    backend = keras.backend.backend()
    with np.load(FIXTURES / f"{system.__name__}-{backend}-final.npz") as archive:
        expected = numbered_variables.named(dict(archive), model)
    # The fused kernels have drawn other samples since: see `kernels/fused/numbers.py`.
    exact = backend == "jax" or system is MaskedLM
    for name, variable in models.named_variables.named_variables(model).items():
        if variable.dtype == "float32" and exact:
            np.testing.assert_allclose(
                np.array(variable), expected[f"model/{name}"], atol=2e-4, err_msg=name
            )


@every_system
def test_every_array_of_a_checkpoint_finds_its_variable(system, tmp_path, monkeypatch):
    """Those that are alike in shape are told apart by their values."""
    config = run_directory(system, tmp_path, monkeypatch)
    seen = {}

    def stop(self, model, step, phase):
        seen.update(named=numbered_variables.named(arrays, model))
        raise KeyboardInterrupt

    path = Checkpoints(Path("run/checkpoints")).path(3)
    with np.load(path) as archive:
        arrays = {n: archive[n] for n in archive.files if n != "description"}
        description = json.loads(bytes(archive["description"]))
    monkeypatch.setattr(Checkpoints, "save", stop)
    with pytest.raises(KeyboardInterrupt):
        pretrain(config)
    named = seen["named"]
    assert len(named) == len(description["variables"])
    for number, own_name, shape, _ in description["variables"]:
        (name,) = [n for n, a in named.items() if a is arrays[number]]
        assert list(named[name].shape) == shape
        if number.startswith("model.") and "seed" not in own_name:
            assert name.rsplit("/", 1)[-1] == own_name
