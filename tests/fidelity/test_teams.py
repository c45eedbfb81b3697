"""TEAMS's details (Shen et al., 2021) that no other test shows.

docs/fidelity/teams.md lists all details, with the tests that show them.
"""

from typing import NamedTuple

import numpy as np
import pytest

from keras_corrupt.devices.replicas import Dropout
from keras_corrupt.models import Teams
from keras_corrupt.training import main, pretraining
from keras_corrupt.training.compiling import compile_model
from tests.conftest import SIZES
from tests.fidelity.conftest import dense, gelu, layer_norm, randomise, recipe

IDS = {name: SIZES[name] for name in ("mask_id", "unmaskable_ids")}


class Column(NamedTuple):
    """A column of table 5."""

    layers: int
    embedding: int
    hidden: int
    ffn: int
    heads: int
    learning_rate: float
    batch: int
    steps: int


TABLE_5 = {
    "small": Column(12, 128, 256, 1024, 4, 5e-4, 256, 500_000),
    "base": Column(12, 768, 768, 3072, 12, 2e-4, 256, 1_000_000),
    "large": Column(24, 1024, 1024, 4096, 16, 2e-4, 2048, 1_760_000),
}
PLUS_PLUS = {
    "small": TABLE_5["small"]._replace(steps=2_000_000),
    "base": TABLE_5["base"]._replace(learning_rate=3e-4, batch=1024),
}
OBJECTIVE = {
    "mask_rate": 0.15,
    "num_negatives": 5,
    "candidates": "sampled",
    "tied_layers": "half",
    "task_layers": 1,
    "exported": "mws",
    "rtd_weight": 5.0,
    "mws_weight": 2.0,
}


# --- Networks ---


@pytest.mark.parametrize("size", TABLE_5)
def test_networks_are_table_5(size):
    column, preset = TABLE_5[size], Teams.presets[size]
    discriminator = preset["discriminator"]
    assert discriminator["num_layers"] == column.layers
    assert discriminator["embedding_size"] == column.embedding
    assert discriminator["hidden_size"] == column.hidden
    assert discriminator["intermediate_size"] == column.ffn
    assert discriminator["num_heads"] == column.heads
    assert discriminator["hidden_size"] == 64 * column.heads
    assert preset["generator_layers"] == column.layers / 2
    assert preset["mask_rate"] == 0.15  # large too


@pytest.mark.parametrize("size", TABLE_5)
def test_generator_is_as_wide_and_its_bottom_half_shared(size):
    narrow = {"hidden_size": 8, "intermediate_size": 8, "num_heads": 1}
    narrow |= {"vocabulary_size": 110, "embedding_size": 4}
    model = Teams.from_preset(size, discriminator=narrow)
    generator, discriminator = model.generator.encoder, model.discriminator.encoder
    assert generator.get_config() == {
        **discriminator.get_config(),
        "num_layers": TABLE_5[size].layers // 2,
    }
    depth = TABLE_5[size].layers // 2
    bottom = zip(generator.layers_, discriminator.layers_[:depth], strict=True)
    assert [a is b for a, b in bottom] == [i < depth // 2 for i in range(depth)]
    rates = {
        layer.rate
        for network in model.networks.values()
        for layer in network._flatten_layers()
        if isinstance(layer, Dropout)
    }
    assert rates == {0.1}


def attention(layer, x, mask):
    def heads(part):
        y = dense(part, x)
        return y.reshape(*y.shape[:2], layer.num_heads, -1).swapaxes(1, 2)

    query, key, value = heads(layer.query), heads(layer.key), heads(layer.value)
    logits = query @ key.swapaxes(2, 3) / np.sqrt(query.shape[-1])
    logits = np.where(mask[:, None, None, :] == 1, logits, -1e9)
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return dense(
        layer.output_projection, (weights @ value).swapaxes(1, 2).reshape(x.shape)
    )


def transformer_layer(layer, x, mask):
    x = layer_norm(layer.attention_norm, x + attention(layer.attention, x, mask))
    fed = dense(layer.feedforward_output, gelu(dense(layer.intermediate, x)))
    return layer_norm(layer.feedforward_norm, x + fed)


@pytest.mark.parametrize("task_layers", [0, 1, 2])
def test_each_task_has_its_own_upper_layers(task_layers, inputs):
    sizes = SIZES["discriminator"] | {"num_layers": 3}
    model = Teams(sizes, 2, task_layers=task_layers, **IDS)
    randomise(model)
    network, mask = model.discriminator, inputs["padding_mask"]
    positions = np.tile(np.array([[1, 5]], "int32"), (6, 1))
    candidates = np.random.default_rng(0).integers(5, 50, (6, 2, 4))
    rtd, mws = network.both_tasks(inputs, positions, candidates)

    x = np.array(network.encoder.embed(inputs))
    common = 3 - task_layers
    for layer in network.encoder.layers_[:common]:
        x = transformer_layer(layer, x, mask)
    selection = detection = x
    for i in range(common, 3):
        selection = transformer_layer(network.encoder.layers_[i], selection, mask)
        detection = transformer_layer(network.rtd_encoder.layers_[i], detection, mask)

    real = mask == 1
    head = network.head
    expected = dense(head.classifier, gelu(dense(head.transform, detection)))
    np.testing.assert_allclose(
        np.array(rtd)[real], expected[..., 0][real], rtol=1e-3, atol=1e-3
    )
    # equation 7, whose states the released code first takes to the embedding size
    head = network.selection_head
    h = layer_norm(head.norm, gelu(dense(head.transform, selection[:, [1, 5]])))
    table = np.array(network.encoder.embeddings.token.embeddings)
    expected = np.einsum("bme,bmce->bmc", h, table[candidates])
    np.testing.assert_allclose(np.array(mws), expected, rtol=1e-3, atol=1e-3)
    # what is fine-tuned: the path of multi-word selection
    encoded = np.array(model.encoder(inputs))
    np.testing.assert_allclose(encoded[real], selection[real], rtol=1e-3, atol=1e-3)
    detected = np.array(network.rtd_encoder(inputs))
    np.testing.assert_allclose(detected[real], detection[real], rtol=1e-3, atol=1e-3)
    exported = Teams(sizes, 2, task_layers=task_layers, exported="rtd", **IDS)
    assert exported.encoder is exported.discriminator.rtd_encoder


def test_task_heads_on_layer_12_are_a_discriminator_of_13_layers():
    narrow = {"hidden_size": 8, "intermediate_size": 8, "num_heads": 1}
    narrow |= {"vocabulary_size": 110, "embedding_size": 4, "num_layers": 13}
    model = Teams.from_preset("small", discriminator=narrow)
    selection = model.discriminator.encoder.layers_
    detection = model.discriminator.rtd_encoder.layers_
    same = [a is b for a, b in zip(selection, detection, strict=True)]
    assert same == [True] * 12 + [False]
    assert model.generator.encoder.num_layers == 6  # as before


# --- Optimisation ---


@pytest.mark.parametrize(
    "size, variant, column",
    [(size, "config", column) for size, column in TABLE_5.items()]
    + [(size, "plus_plus", column) for size, column in PLUS_PLUS.items()],
)
def test_recipe_is_table_5(size, variant, column):
    config = getattr(recipe(f"teams_{size}"), variant)()
    assert (config.model, config.preset) == ("Teams", size)
    assert config.learning_rate == column.learning_rate
    assert config.batch_size == column.batch
    assert config.steps == column.steps
    assert config.sequence_length == 512  # 4.1
    assert config.objective == OBJECTIVE


@pytest.mark.parametrize("size", TABLE_5)
def test_recipe_makes_the_papers_optimizer(size):
    config = recipe(f"teams_{size}").config()
    model = Teams(SIZES["discriminator"], 2, **IDS)
    compile_model(model, config)
    optimizer = model.optimizer
    assert (optimizer.beta_1, optimizer.beta_2) == (0.9, 0.999)
    assert (optimizer.epsilon, optimizer.decay_rate) == (1e-6, 0.01)
    assert optimizer.global_clipnorm == 1.0  # as in the released code
    assert optimizer.bias_correction is True  # likewise
    for step in (0, 5_000, 10_000, config.steps // 2, config.steps):
        rate = config.learning_rate * (1 - step / config.steps) * min(1, step / 10_000)
        optimizer.iterations.assign(step)
        actual = float(optimizer.learning_rate)
        assert actual == pytest.approx(rate, rel=1e-4, abs=1e-12)


@pytest.mark.parametrize("size", PLUS_PLUS)
def test_variant_flag_chooses_the_plus_plus_settings(size, monkeypatch, capsys):
    module, seen = recipe(f"teams_{size}"), []
    monkeypatch.setattr(
        pretraining, "pretrain", lambda config: seen.append(config) or 1
    )

    def run(*flags):
        monkeypatch.setattr("sys.argv", ["recipe.py", *flags])
        main(module.config(), module.__doc__, plus_plus=module.plus_plus())
        return seen.pop()

    assert run() == module.config()
    assert run("--variant", "plus_plus") == module.plus_plus()
    assert run("--batch-size", "512", "--variant", "plus_plus").batch_size == 512
    assert run("--num_negatives", "10").objective["num_negatives"] == 10
    for flags in (["--variant", "plus"], ["--variants", "plus_plus"]):
        with pytest.raises(SystemExit) as caught:
            run(*flags)
        assert caught.value.code == 2
