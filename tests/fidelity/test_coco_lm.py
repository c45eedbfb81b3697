"""COCO-LM's details (Meng et al., 2021) that no other test shows.

docs/fidelity/coco_lm.md lists all details, with the tests that show them.
"""

from typing import NamedTuple

import numpy as np
import pytest

from keras_corrupt.devices.replicas import Dropout
from keras_corrupt.models import CocoLM
from keras_corrupt.training.command_line import parse
from keras_corrupt.training.compiling import compile_model
from keras_corrupt.training.phases import check_phases, enter
from tests.conftest import SIZES
from tests.fidelity.conftest import dense, gelu, layer_norm, randomise, recipe

NARROW = {"hidden_size": 8, "intermediate_size": 8, "num_heads": 1}
NARROW |= {"vocabulary_size": 110, "embedding_size": 8}


class Column(NamedTuple):
    """A column of table 6, with section 4's networks and vocabularies."""

    steps: int
    learning_rate: float
    buckets: int
    distance: int
    layers: int
    hidden: int
    auxiliary_layers: int
    vocabulary: int
    lowercase: bool


TABLE_6 = {
    "base": Column(125_000, 5e-4, 32, 128, 12, 768, 4, 32_768, True),
    "base_plus_plus": Column(1_950_000, 2e-4, 64, 128, 12, 768, 4, 64_000, False),
    "large_plus_plus": Column(1_950_000, 1e-4, 128, 256, 24, 1024, 6, 64_000, False),
}
RECIPES = {
    "base": ("coco_lm_base", "config"),
    "base_plus_plus": ("coco_lm_base", "plus_plus"),
    "large_plus_plus": ("coco_lm_large", "config"),
}


def config_of(size):
    name, function = RECIPES[size]
    return getattr(recipe(name), function)()


@pytest.mark.parametrize("size", TABLE_6)
def test_networks_are_section_4s(size):
    column, preset = TABLE_6[size], CocoLM.presets[size]
    main = preset["discriminator"]
    assert (main["num_layers"], main["hidden_size"]) == (column.layers, column.hidden)
    assert main["embedding_size"] == main["hidden_size"] == 64 * main["num_heads"]
    assert main["intermediate_size"] == 4 * main["hidden_size"]
    assert main["vocabulary_size"] == column.vocabulary
    assert main["relative_positions"] == {
        "num_buckets": column.buckets,
        "max_distance": column.distance,
    }
    assert preset["mask_rate"] == 0.15


@pytest.mark.parametrize("size", TABLE_6)
def test_the_auxiliary_network_is_shallower_not_narrower(size):
    model = CocoLM.from_preset(size, discriminator=NARROW)
    auxiliary, main = model.generator.encoder, model.discriminator.encoder
    assert auxiliary.architecture == {
        **main.architecture,
        "num_layers": TABLE_6[size].auxiliary_layers,
    }
    assert auxiliary.embeddings.token is main.embeddings.token
    rates = {
        layer.rate
        for network in model.networks.values()
        for layer in network._flatten_layers()
        if isinstance(layer, Dropout)
    }
    assert rates == {0.1}


def test_heads(inputs):
    """The auxiliary network's has a transform, neither of the main one's has."""
    sizes = SIZES["discriminator"] | {"embedding_size": 16}
    model = CocoLM(sizes, {"num_layers": 1}, mask_id=4)
    randomise(model)
    main, auxiliary = model.discriminator, model.generator
    positions = np.tile(np.array([[1, 5]], "int32"), (6, 1))
    table = np.array(main.encoder.embeddings.token.embeddings)

    hidden = np.array(main.encoder(inputs), "float64")
    expected = dense(main.head.classifier, hidden)[..., 0]
    np.testing.assert_allclose(np.array(main(inputs)), expected, rtol=1e-4, atol=1e-4)
    logits = hidden[:, [1, 5]] @ table.T + np.array(main.vocabulary_head.bias)
    found = main.vocabulary_head(hidden.astype("float32"), positions)
    np.testing.assert_allclose(np.array(found), logits, rtol=1e-4, atol=1e-4)

    hidden = np.array(auxiliary.encoder(inputs), "float64")[:, [1, 5]]
    head = auxiliary.head
    states = layer_norm(head.norm, gelu(dense(head.transform, hidden)))
    expected = states @ table.T + np.array(head.bias)
    found = auxiliary(inputs, positions)
    np.testing.assert_allclose(np.array(found), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("size", TABLE_6)
def test_recipe_is_table_6(size):
    column, config = TABLE_6[size], config_of(size)
    assert (config.model, config.preset) == ("CocoLM", size)
    assert (config.steps, config.learning_rate) == (column.steps, column.learning_rate)
    assert (config.batch_size, config.sequence_length) == (2048, 512)
    assert config.tokenizer == "byte_bpe"
    assert config.vocabulary_size == column.vocabulary
    assert config.lowercase == config.strip_accents == column.lowercase
    model = CocoLM.from_preset(size, discriminator=NARROW, **config.objective)
    assert model.loss_weights == {"mlm": 1.0, "rtd": 50.0, "lm": 1.0, "scl": 1.0}
    assert model.crop_fraction == 0.9
    compile_model(model, config)
    optimizer = model.optimizer
    assert (optimizer.beta_1, optimizer.beta_2) == (0.9, 0.98)
    assert (optimizer.epsilon, optimizer.decay_rate) == (1e-6, 0.01)
    assert optimizer.global_clipnorm == 2.0
    for step in (0, 5_000, 10_000, config.steps // 2, config.steps):
        rate = config.learning_rate * (1 - step / config.steps) * min(1, step / 10_000)
        optimizer.iterations.assign(step)
        actual = float(optimizer.learning_rate)
        assert actual == pytest.approx(rate, rel=1e-4, abs=1e-12)


# --- Table 3 ---


def model_of(config):
    options = {**config.objective}
    options["discriminator"] = NARROW | options.get("discriminator", {})
    return CocoLM.from_preset("tiny", **options)


@pytest.mark.parametrize(
    "flags, losses",
    [
        ("--token_task rtd --sequence_task none", {"mlm", "rtd"}),
        ("--sequence_task none", {"mlm", "rtd", "lm"}),
        ("--token_task rtd", {"mlm", "rtd", "scl"}),
        ("--token_task all_token_lm", {"mlm", "lm", "scl"}),
        ("--token_task clm_without_copy", {"mlm", "rtd", "lm", "scl"}),
    ],
)
def test_pretraining_tasks_are_flags(flags, losses):
    config = parse(recipe("coco_lm_base").config(), flags.split())
    assert set(model_of(config).loss_weights) == losses


def test_network_settings_are_flags():
    base = recipe("coco_lm_base").config()
    config = parse(base, ["--discriminator.relative_positions", "null"])
    for network in model_of(config).networks.values():
        assert network.encoder.position_bias is None
    flags = "--generator.num_layers 3 --generator.hidden_size 4"
    flags += " --generator.intermediate_size 6 --generator.num_heads 2"
    encoder = model_of(parse(base, flags.split())).generator.encoder
    assert (encoder.num_layers, encoder.hidden_size, encoder.num_heads) == (3, 4, 2)
    assert encoder.embedding_projection is not None


def test_a_converged_auxiliary_network_is_frozen():
    """The phases of the recipe: first it alone, then the other one alone."""
    config = recipe("coco_lm_base").converged_auxiliary()
    model = model_of(config)
    check_phases(config, model)
    first, second = config.phases
    assert first.steps == second.steps == 125_000 == config.steps / 2
    trainable, weights = model.trainable_variables, model.loss_weights
    variables = {
        n: network.trainable_variables for n, network in model.networks.items()
    }
    main, other = "discriminator", "generator"
    for phase, trained, frozen, losses in (
        (first, other, main, {"mlm": 1.0, "rtd": 0.0, "lm": 0.0, "scl": 0.0}),
        (second, main, other, {"mlm": 0.0, "rtd": 50.0, "lm": 1.0, "scl": 1.0}),
    ):
        enter(phase, model, trainable, weights)
        assert all(v.trainable for v in variables[trained])
        assert not any(v.trainable for v in variables[frozen])
        assert model.loss_weights == losses
