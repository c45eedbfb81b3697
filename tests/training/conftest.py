import contextlib
import dataclasses
import hashlib
import io
import os

import numpy as np
import pytest
from safetensors.numpy import load_file

from keras_corrupt.devices import distribution
from keras_corrupt.models import Electra, MaskedLM
from keras_corrupt.training import PretrainConfig, pretrain
from tests.conftest import without_graphs
from tests.data.conftest import (  # noqa: F401
    corpus,
    prepared,
    settings,
    write_corpus,
)

#: A preset that takes seconds, in the place of `tiny`.
ENCODER = {
    "vocabulary_size": 120,
    "num_layers": 1,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_heads": 2,
    "max_length": 40,
}
ELECTRA = {
    "discriminator": ENCODER,
    "generator": {"hidden_size": 8, "intermediate_size": 16, "num_heads": 1},
    "mask_rate": 0.15,
}


@contextlib.contextmanager
def small_runs():
    with without_graphs(), pytest.MonkeyPatch.context() as patch:
        patch.setitem(Electra.presets, "tiny", ELECTRA)
        patch.setitem(MaskedLM.presets, "tiny", {"encoder": ENCODER, "mask_rate": 0.15})
        yield


@pytest.fixture(scope="module")
def presets():
    with small_runs():
        yield


@pytest.fixture(scope="session")
def recipe(prepared):  # noqa: F811
    """Six steps in two intervals, of 16 x 32 tokens."""
    return PretrainConfig(
        model="Electra",
        preset="tiny",
        output="",
        data=str(prepared.directory),
        sequence_length=32,
        batch_size=16,
        steps=6,
        learning_rate=1e-2,
        warmup_steps=1,
        interval=3,
        validation_batches=2,
        objective={"mask_rate": 0.2},
    )


@pytest.fixture
def config(recipe, tmp_path):
    return dataclasses.replace(recipe, output=str(tmp_path / "run"))


@dataclasses.dataclass
class Run:
    """What a finished run returned, printed and wrote."""

    config: PretrainConfig
    model: Electra
    printed: str
    directory: os.PathLike


@pytest.fixture(scope="session")
def finished(recipe, tmp_path_factory):
    directory = tmp_path_factory.mktemp("finished") / "run"
    config = dataclasses.replace(recipe, output=str(directory))
    with small_runs(), contextlib.redirect_stdout(io.StringIO()) as printed:
        model = pretrain(config)
    return Run(config, model, printed.getvalue(), directory)


def command_line(config):
    """The flags that make a recipe run `config`."""
    flags = [f"--output={config.output}"]
    return flags + ["--data", config.data] if config.data else flags


def contents(directory):
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in directory.rglob("*")
        if path.is_file()
    }


def with_devices(count, **changes):
    """The `Distribution` that a run on `count` devices would choose."""
    changes = {"devices": count, **changes}
    config = PretrainConfig(model="Electra", preset="tiny", output="", **changes)
    return distribution.choose(config)


def weights_of(directory):
    """All arrays of a run's preset and of its last checkpoint."""
    arrays = {}

    for path in sorted((directory / "preset").glob("*/model.safetensors")):
        for name, array in load_file(path).items():
            arrays[f"{path.parent.name}/{name}"] = array
    last = sorted((directory / "checkpoints").iterdir())[-1]
    with np.load(last) as archive:
        arrays |= {f"{last.name}/{name}": archive[name] for name in archive.files}
    return arrays


def assert_same_weights(one, other):
    a, b = weights_of(one), weights_of(other)
    assert a.keys() == b.keys() and len(a) > 50
    for name, array in a.items():
        np.testing.assert_array_equal(array, b[name], err_msg=name)
