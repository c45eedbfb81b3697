"""Every system on encoders with all of ModernBERT's parts."""

import numpy as np
import pytest

from keras_corrupt.models import (
    AdversarialElectra,
    AllTokensMLM,
    CocoLM,
    Electra,
    ElectraTT,
    Electric,
    MaskedLM,
    ReplaceMLM,
    Teams,
    TwoTower,
    UnigramElectra,
    load_preset,
)
from keras_corrupt.presets.named_variables import named_weights
from keras_corrupt.training import AdamW
from tests.conftest import COMPILED, MODERN, SIZES, make_inputs
from tests.models.conftest import arrays

ENCODER = SIZES["discriminator"] | MODERN | {"num_layers": 4}
PAIR = {"discriminator": ENCODER, "generator": SIZES["generator"]}
SYSTEMS = {
    MaskedLM: {"encoder": ENCODER},
    TwoTower: {"encoder": ENCODER},
    Electra: PAIR,
    AdversarialElectra: PAIR,
    UnigramElectra: {"discriminator": ENCODER},
    ReplaceMLM: PAIR,
    AllTokensMLM: PAIR,
    Electric: PAIR,
    ElectraTT: PAIR,
    Teams: {"discriminator": ENCODER, "generator_layers": 2, "task_layers": 2},
    CocoLM: {
        "discriminator": ENCODER | {"embedding_size": 16},
        "generator": {"num_layers": 1},
    },
}


def make(system, **changes):
    ids = {"mask_id": 4, "unmaskable_ids": (0, 2, 3)}
    model = system(**{**SYSTEMS[system], **changes}, **ids)
    if system is UnigramElectra:
        model.use_unigrams(np.ones(50))
    return model


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_step_trains_all_weights_and_a_preset_keeps_them(system, tmp_path, inputs):
    model = make(system)
    model.compile(AdamW(0.01), jit_compile=COMPILED, run_eagerly=not COMPILED)
    before = [np.array(v) for v in model.trainable_variables]
    assert np.isfinite(model.train_on_batch(inputs)).all()
    for old, new in zip(before, model.trainable_variables, strict=True):
        assert (old != np.array(new)).any(), new.path
    model.save_to_preset(tmp_path / "preset")
    loaded = load_preset(tmp_path / "preset")
    assert loaded.get_config() == model.get_config()
    ours, theirs = (arrays(m.token_states(inputs)) for m in (model, loaded))
    np.testing.assert_array_equal(ours, theirs)
    for name, network in model.networks.items():
        for weight, variable in named_weights(network).items():
            other = named_weights(loaded.networks[name])[weight]
            np.testing.assert_array_equal(np.array(variable), np.array(other))


@pytest.mark.parametrize(
    "tied", ["token", "token_and_position", "all", "gradient_disentangled"]
)
def test_what_is_absent_is_not_tied(tied, inputs):
    model = make(Electra, tied_embeddings=tied)
    ours, theirs = model.discriminator.encoder, model.generator.encoder
    assert ours.embeddings.position is theirs.embeddings.position is None
    assert ours.embeddings.segment is theirs.embeddings.segment is None
    shared = {id(v) for v in ours.weights} & {id(v) for v in theirs.weights}
    assert len(shared) == (2 if tied == "all" else 1)
    encoder = model.encoder  # of its own, with sums where tables are disentangled
    np.testing.assert_allclose(
        np.array(encoder(inputs)), np.array(ours(inputs)), atol=1e-6
    )


def test_everything_is_everything():
    model = make(Electra, generator={}, tied_embeddings="everything")
    ours, theirs = model.discriminator.encoder, model.generator.encoder
    assert {id(v) for v in ours.weights} == {id(v) for v in theirs.weights}


def test_teams_computes_each_tasks_encoder_as_by_itself(inputs):
    for task_layers in (0, 1, 4):
        network = make(Teams, task_layers=task_layers).discriminator
        for weight in network.weights:  # what would be left out would be seen
            weight.assign(weight + 0.3)
        positions = np.array([[1, 3]] * 6, "int32")
        candidates = np.arange(36, dtype="int32").reshape(6, 2, 3)
        found = network.both_tasks(inputs, positions, candidates)
        selected = network.selection_head(
            network.encoder(inputs), positions, candidates
        )
        for ours, alone in zip(found, (network(inputs), selected), strict=True):
            np.testing.assert_allclose(np.array(ours), np.array(alone), atol=1e-4)
        norm = 16 * 20 * 6 * (task_layers > 0)
        own = sum(layer.flops(20) for layer in network.own_layers)
        shared = network.encoder.flops(20) + network.head.flops(20)
        assert network.flops(20) == shared + own + norm


@pytest.mark.parametrize("options", [{}, {"use_bias": True}, {"norm": "post"}])
def test_steps_in_a_graph_give_the_losses_of_steps_without_one(options):
    """In the graph the CPU kernels compute the parts that they know."""
    still = {"dropout": 0.0, "attention_dropout": 0.0, "initializer_range": 0.3}
    inputs = make_inputs()
    inputs["masked_positions"] = np.array([[1, 4, 6]] * 6, "int32")
    inputs["masked_weights"] = np.ones((6, 3), "float32")
    models, losses = [], []
    for eager in (False, True):
        model = make(
            MaskedLM, encoder=ENCODER | still | options, keep_rate=0, random_rate=0
        )
        if models:
            model.network.set_weights(models[0].network.get_weights())
        model.compile(AdamW(0.01), run_eagerly=eager, jit_compile=False)
        models.append(model)
    for model in models:
        history = model.fit(inputs, batch_size=6, epochs=4, verbose=0)
        losses.append(history.history["loss"])
    assert losses[0][0] - losses[0][-1] > 0.1
    np.testing.assert_allclose(*losses, rtol=1e-4)
