"""Electric's details (Clark's thesis, 5.1 and 5.4.5) that no other test shows.

docs/fidelity/electra.md lists all details, with the tests that show them.
"""

import numpy as np
import pytest

from keras_corrupt.models import Electra, ElectraTT, Electric, TwoTower
from keras_corrupt.training.compiling import compile_model
from tests.fidelity.conftest import recipe
from tests.fidelity.test_electra import TABLE_5_1, schedule

RECIPES = {
    "electric_small": (Electric, "small"),
    "electric_base": (Electric, "base"),
    "electra_tt_small": (ElectraTT, "small"),
    "two_tower_small": (TwoTower, "small"),
}


@pytest.mark.parametrize("system", [Electric, ElectraTT])
def test_networks_are_electras(system):
    """Each tower has the sizes of ELECTRA's generator."""
    assert system.presets == Electra.presets
    model = system.from_preset("tiny")
    masked_lm = Electra.from_preset("tiny").generator.encoder.architecture
    for tower in (model.generator.left_to_right, model.generator.right_to_left):
        assert {**tower.architecture, "attention": "bidirectional"} == masked_lm


@pytest.mark.parametrize("name", RECIPES)
def test_recipe_is_table_5_1(name):
    (system, size), config = RECIPES[name], recipe(name).config()
    column = TABLE_5_1[size]
    assert (config.model_class, config.preset) == (system, size)
    assert schedule(config) == (column.learning_rate, column.batch, column.length)
    assert config.steps == column.steps
    assert config.objective.get("mask_rate", 0.15) == column.mask_percent / 100
    model = system.from_preset("tiny")
    compile_model(model, config)
    optimizer = model.optimizer
    assert (optimizer.beta_1, optimizer.beta_2) == (0.9, 0.999)
    assert (optimizer.epsilon, optimizer.decay_rate) == (1e-6, 0.01)
    assert optimizer.bias_correction is False


def test_the_generators_softmax_is_of_the_discriminators_embeddings():
    generator = Electric.from_preset("tiny").generator
    states = np.random.default_rng(0).normal(size=(1, 3, 64)).astype("float32")
    logits = np.array(generator.head(states, np.array([[0, 2]])))
    head, table = generator.head, generator.left_to_right.embeddings.token.embeddings
    hidden = np.array(head.norm(head.transform(states)))[:, [0, 2]]
    np.testing.assert_allclose(logits, hidden @ np.array(table).T, atol=1e-4)
    assert table.shape == (8192, 128) and head.transform.kernel.shape == (64, 128)
