"""Models to convert, and how they are compared."""

import numpy as np
import pytest

from keras_corrupt.convert import weights
from keras_corrupt.convert.conversion import convert
from keras_corrupt.models import Electra
from keras_corrupt.models.weightless import weightless
from keras_corrupt.presets.named_variables import named_weights
from tests.conftest import SIZES


@pytest.fixture
def electra(tokenizer):
    sizes = {"vocabulary_size": 60, "num_layers": 2, "initializer_range": 0.4}
    sizes = SIZES["discriminator"] | sizes
    return Electra(sizes, SIZES["generator"], tokenizer=tokenizer)


@pytest.fixture
def without_values(monkeypatch):
    """Models take no memory, and of files the names are read: all, and those taken."""
    names = {"all": set(), "taken": set()}

    def assign(found, wanted):
        names["all"] |= found.shapes.keys()
        names["taken"] |= {theirs for _, _, theirs, _ in wanted}

    monkeypatch.setattr(weights, "assign", assign)
    with weightless():
        yield names


def assert_close(made, expected, inputs):
    """Compares where there are tokens."""
    real = inputs["padding_mask"] > 0
    made, expected = np.array(made)[real], np.array(expected)[real]
    np.testing.assert_allclose(made, expected, atol=1e-5, rtol=0)


def assert_same_weights(network, other):
    theirs = named_weights(other)
    for name, variable in named_weights(network).items():
        np.testing.assert_array_equal(np.array(variable), theirs[name], name)


def written(model, folder, to, **options):
    """Converts a model; returns the directory."""
    folder.mkdir(exist_ok=True)
    model.save_to_preset(folder / "preset")
    convert(folder / "preset", folder / "theirs", to=to, **options)
    return folder / "theirs"


def scrambled(model, seed=0):
    """Gives variables of a library's model values that leave none without effect."""
    rng = np.random.default_rng(seed)
    for variable in model.weights:
        if "float" in str(variable.dtype):
            value = rng.normal(scale=0.3, size=tuple(variable.shape))
            variable.assign(
                value + ("gamma" in getattr(variable, "path", variable.name))
            )
    return model
