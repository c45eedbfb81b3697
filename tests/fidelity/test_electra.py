"""ELECTRA's details (Clark's thesis, 5.1 to 5.4) that no other test shows.

docs/fidelity/electra.md lists all details, with the tests that show them.
"""

import math
from fractions import Fraction
from typing import NamedTuple

import keras
import numpy as np
import pytest
from keras import ops

from keras_corrupt.corruption import Masking
from keras_corrupt.corruption.corrupted import Corrupted, Predictions
from keras_corrupt.devices.replicas import Dropout
from keras_corrupt.models import Electra, MaskedLM
from keras_corrupt.models.generator_sizes import complete_generator
from keras_corrupt.objectives.replaced_tokens import Detections
from keras_corrupt.training import AdamW
from keras_corrupt.training.compiling import compile_model
from tests.conftest import COMPILED, make_inputs
from tests.fidelity.conftest import dense, gelu, layer_norm, randomise, recipe
from tests.models.conftest import arrays


class Column(NamedTuple):
    """A column of table 5.1; its sequence length is from section 5.4.1."""

    layers: int
    hidden: int
    ffn: int
    heads: int
    embedding: int
    generator: Fraction
    mask_percent: int
    learning_rate: float
    batch: int
    steps: int
    length: int


# fmt: off
TABLE_5_1 = {
    "small": Column(12, 256, 1024, 4, 128, Fraction(1, 4), 15, 5e-4, 128, 10**6, 128),
    "base": Column(12, 768, 3072, 12, 768, Fraction(1, 3), 15, 2e-4, 256, 766_000, 512),
    "large": Column(
        24, 1024, 4096, 16, 1024, Fraction(1, 4), 25, 2e-4, 2048, 400_000, 512
    ),
}
# fmt: on


# --- Networks ---


@pytest.mark.parametrize("size", TABLE_5_1)
def test_networks_are_table_5_1(size):
    column, preset = TABLE_5_1[size], Electra.presets[size]
    discriminator, generator = preset["discriminator"], complete_generator(preset)
    for network, factor in ((discriminator, 1), (generator, column.generator)):
        assert network["num_layers"] == column.layers  # the generator is as deep
        assert network["hidden_size"] == column.hidden * factor
        assert network["intermediate_size"] == column.ffn * factor
        assert network["num_heads"] == column.heads * factor
        assert network["hidden_size"] == 64 * network["num_heads"]
        assert network["embedding_size"] == column.embedding
        assert network["max_length"] == 512
    assert preset["mask_rate"] == column.mask_percent / 100
    assert MaskedLM.presets[size]["encoder"] == discriminator


@pytest.mark.parametrize("size", TABLE_5_1)
def test_dropout_is_a_tenth_in_every_layer_of_both_networks(size):
    sizes = {"num_layers": 2, "hidden_size": 8, "intermediate_size": 8, "num_heads": 1}
    small = {**sizes, "vocabulary_size": 110, "embedding_size": 8}
    model = Electra.from_preset(size, discriminator=small, generator=sizes)
    for network in model.networks.values():
        layers = network._flatten_layers()
        rates = [x.rate for x in layers if isinstance(x, Dropout)]
        # the embeddings', then each layer's own and its attention's
        assert rates == [0.1] * (1 + 2 * network.encoder.num_layers)


def test_the_generator_projects_the_discriminators_embeddings(sizes, inputs):
    model = Electra(**sizes)
    randomise(model)
    encoder, shared = model.generator.encoder, model.discriminator.encoder.embeddings
    x = np.array(shared.token.embeddings)[inputs["token_ids"]]
    x = x + np.array(shared.position.embeddings)[:20]
    x = x + np.array(encoder.embeddings.segment.embeddings)[inputs["segment_ids"]]
    x = dense(encoder.embedding_projection, layer_norm(encoder.embeddings.norm, x))
    assert x.shape == (6, 20, 8)
    np.testing.assert_allclose(np.array(encoder.embed(inputs)), x, atol=1e-4)


def test_generator_head_ends_in_the_discriminators_token_embeddings(sizes, inputs):
    model = Electra(**sizes)
    randomise(model)
    network, head = model.generator, model.generator.head
    positions = np.tile(np.array([[1, 5, 7]], "int32"), (6, 1))
    hidden = np.array(network.encoder(inputs))[:, [1, 5, 7]]
    x = layer_norm(head.norm, gelu(dense(head.transform, hidden)))
    table = np.array(model.discriminator.encoder.embeddings.token.embeddings)
    expected = x @ table.T + np.array(head.bias)
    logits = np.array(network(inputs, positions))
    np.testing.assert_allclose(logits, expected, atol=1e-4)


def test_discriminator_head(sizes, inputs):
    model = Electra(**sizes)
    randomise(model)
    network = model.discriminator
    hidden = np.array(network.encoder(inputs))
    expected = dense(
        network.head.classifier, gelu(dense(network.head.transform, hidden))
    )
    np.testing.assert_allclose(np.array(network(inputs)), expected[..., 0], atol=1e-4)
    assert model.encoder is network.encoder  # the one that is fine-tuned


def test_initial_weights_are_cut_normals_of_0_02():
    # cut at two deviations, without rescaling: the deviation becomes 0.88 of it
    inside = math.erf(math.sqrt(2))
    density = math.exp(-2) / math.sqrt(2 * math.pi)
    deviation = 0.02 * math.sqrt(1 - 4 * density / inside)
    shallow = {"num_layers": 1}
    model = Electra.from_preset("small", discriminator=shallow, generator=shallow)
    for variable in model.trainable_variables:
        values = np.array(variable)
        if values.ndim == 1:
            assert (values == (variable.name == "gamma")).all(), variable.path
            continue
        assert abs(values).max() <= 0.04
        error = 4 / math.sqrt(2 * values.size)  # four standard errors
        assert values.std() == pytest.approx(deviation, rel=error), variable.path


# --- Corruption and loss ---


@pytest.mark.parametrize("keep_rate", [0.0, 0.15])
def test_masked_input_holds_originals_and_mask_tokens_only(sizes, keep_rate):
    model = Electra(**sizes, mask_rate=0.5, keep_rate=keep_rate)
    inputs = make_inputs(batch=200, length=24)
    outputs = arrays(model(inputs))
    original, masked = inputs["token_ids"], outputs["mlm"].token_ids
    positions, weights = outputs["corrupted"].masking
    rows, slots = np.nonzero(weights)
    chosen = rows, positions[rows, slots]
    assert not np.isin(original[chosen], [0, 2, 3]).any()  # [PAD], [CLS], [SEP]
    assert (masked[masked != original] == 4).all()
    kept = (masked[chosen] == original[chosen]).mean()
    assert kept == pytest.approx(keep_rate, abs=0.03 if keep_rate else 0)
    # a position that kept its token is predicted and sampled like the others
    text = outputs["corrupted"]
    target, sampled = text.target_ids[rows, slots], text.sampled_ids[rows, slots]
    assert (target == original[chosen]).all()
    assert (outputs["corrupted"].token_ids[chosen] == sampled).all()


def test_masks_are_drawn_anew_each_step_of_training(sizes, inputs):
    dropout = {"dropout": 0.0, "attention_dropout": 0.0}
    sizes["discriminator"] |= {**dropout, "num_layers": 1}
    model = Electra(**sizes)
    model.compile(AdamW(0.0, weight_decay=0.0), jit_compile=COMPILED)
    state = model.seed_generator.state
    start = np.array(state)

    def mlm_loss():
        model.reset_metrics()
        return float(model.train_on_batch(inputs, return_dict=True)["mlm_loss"])

    # nothing is learned, so only other masks can change the generator's loss
    losses = [mlm_loss() for _ in range(3)]
    assert len(set(losses)) == 3
    state.assign(start)
    assert mlm_loss() == pytest.approx(losses[0], rel=1e-6)


def test_loss_is_mlm_plus_50_rtd_over_the_tokens_of_the_batch(sizes):
    mlm_logits = np.zeros((2, 2, 8), "float32")
    mlm_logits[0, 1, 5] = math.log(9)  # probability 9/16
    mlm_logits[1, 1] = np.arange(8) * 50  # not a masked position: weight 0
    rtd_logits = np.array([[math.log(3)] * 3, [0.0, 99.0, 99.0]], "float32")
    masking = Masking(np.array([[0, 1], [0, 1]]), np.array([[1, 1], [1, 0]], "float32"))
    targets, sampled = np.array([[3, 5], [1, 0]]), np.array([[3, 6], [1, 0]])
    replaced = np.array([[0, 1, 0], [0, 0, 0]], "float32")
    outputs = {
        "corrupted": Corrupted(targets, sampled, masking, targets, sampled),
        "mlm": Predictions(targets, masking, targets, mlm_logits),
        # Probabilities of "replaced": 3/4 and 1/2.
        "rtd": Detections(rtd_logits, replaced, np.array([[1, 1, 1], [1, 0, 0]])),
    }
    outputs = keras.tree.map_structure(ops.convert_to_tensor, outputs)
    loss = float(Electra(**sizes).compute_loss(y_pred=outputs))
    mlm = (math.log(8) + math.log(16 / 9) + math.log(8)) / 3
    rtd = (math.log(4) + math.log(4 / 3) + math.log(4) + math.log(2)) / 4
    assert loss == pytest.approx(mlm + 50 * rtd, rel=1e-5)


# --- Optimisation ---


def schedule(config):
    return config.learning_rate, config.batch_size, config.sequence_length


@pytest.mark.parametrize("size", TABLE_5_1)
def test_recipe_is_table_5_1(size):
    column, config = TABLE_5_1[size], recipe(f"electra_{size}").config()
    assert (config.model, config.preset) == ("Electra", size)
    assert schedule(config) == (column.learning_rate, column.batch, column.length)
    assert config.steps == column.steps
    assert config.objective == {
        "mask_rate": column.mask_percent / 100,
        "keep_rate": 0.0,
        "tied_embeddings": "token_and_position",
    }


def test_bert_recipe_is_table_5_1_and_its_80_10_10():
    column, config = TABLE_5_1["base"], recipe("bert_base").config()
    assert (config.model, config.preset) == ("MaskedLM", "base")
    assert schedule(config) == (column.learning_rate, column.batch, column.length)
    assert config.steps == 1_000_000
    expected = {"mask_rate": 0.15, "keep_rate": 0.1, "random_rate": 0.1}
    assert config.objective == expected
    model = MaskedLM.from_preset("tiny")
    assert list(model.loss_weights) == ["mlm"]  # no next-sentence prediction


@pytest.mark.parametrize("name", [*(f"electra_{x}" for x in TABLE_5_1), "bert_base"])
def test_recipe_makes_the_papers_optimizer(sizes, name):
    config, model = recipe(name).config(), Electra(**sizes)
    compile_model(model, config)
    optimizer = model.optimizer
    assert (optimizer.beta_1, optimizer.beta_2) == (0.9, 0.999)
    assert optimizer.epsilon == 1e-6
    assert optimizer.decay_rate == 0.01
    assert optimizer.global_clipnorm == 1.0
    assert optimizer.bias_correction is False
    for step in (0, 5_000, 10_000, config.steps // 2, config.steps):
        rate = config.learning_rate * (1 - step / config.steps) * min(1, step / 10_000)
        optimizer.iterations.assign(step)
        actual = float(optimizer.learning_rate)
        assert actual == pytest.approx(rate, rel=1e-4, abs=1e-12)


def test_weight_decay_leaves_out_electras_biases_and_norms(sizes):
    sizes["discriminator"] |= {"num_layers": 1}
    model = Electra(**sizes)
    randomise(model)
    variables = model.trainable_variables
    before = [np.array(v) for v in variables]
    optimizer = AdamW(0.1, weight_decay=0.5)
    optimizer.build(variables)
    optimizer.apply([ops.zeros(v.shape) for v in variables])
    for variable, old in zip(variables, before, strict=True):
        # biases, gains and offsets are ELECTRA's only vectors
        expected = old if old.ndim == 1 else old * (1 - 0.1 * 0.5)
        new = np.array(variable)
        np.testing.assert_allclose(new, expected, rtol=1e-5, err_msg=variable.path)


def test_two_stage_training():
    """As many steps for each, the discriminator from the generator's weights."""
    module = recipe("electra_small")
    base, config = module.config(), module.two_stage()
    first, second = config.phases
    assert first.steps == second.steps == base.steps
    assert (first.networks, first.loss_weights) == (("generator",), {"rtd": 0.0})
    assert second.networks == ("discriminator",)
    assert second.start == "start_from_generator" and first.start is None
    model = Electra.from_preset("tiny", **config.objective)
    model.start_from_generator()  # one size, nothing shared
    for ours, theirs in zip(
        model.encoder.weights, model.generator.encoder.weights, strict=True
    ):
        assert ours is not theirs
        np.testing.assert_array_equal(ours, theirs)
