"""Replace MLM and All-Tokens MLM, between BERT and ELECTRA (Clark's thesis, 5.4.3)."""

import numpy as np
import pytest

from keras_corrupt.heads import VocabularyHead
from keras_corrupt.models import AllTokensMLM, ReplaceMLM, load_preset
from keras_corrupt.models.generator_sizes import complete_generator
from keras_corrupt.models.networks import Discriminator, MaskedLMNetwork
from keras_corrupt.models.sizes import DETECTORS
from keras_corrupt.models.weightless import weightless
from keras_corrupt.training import AdamW
from tests.models.conftest import gradients, with_right_predictions

both = pytest.mark.parametrize("system", [ReplaceMLM, AllTokensMLM])


def make(system, sizes, **options):
    rates = {"dropout": 0.0, "attention_dropout": 0.0}
    sizes["discriminator"] |= {**rates, "initializer_range": 0.3}
    return system(**sizes, **options)


def log_softmax(logits):
    logits = np.array(logits, "float64")
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def picked(logs, token_ids):
    return np.take_along_axis(logs, np.array(token_ids)[..., None], -1)[..., 0]


def mean(values, weights):
    values, weights = np.array(values, "float64"), np.array(weights, "float64")
    return (values * weights).sum() / weights.sum()


def numpy_loss(model, inputs, outputs):
    """The generator's loss, and the other network's, from logits at all positions."""
    mlm = -picked(log_softmax(outputs["mlm"].logits), outputs["corrupted"].target_ids)
    corrupted_ids = np.array(outputs["corrupted"].token_ids)
    corrupted = {**inputs, "token_ids": corrupted_ids}
    length = corrupted_ids.shape[1]
    everywhere = np.tile(np.arange(length, dtype="int32"), (len(corrupted_ids), 1))
    hidden = model.discriminator.encoder(corrupted)
    original = inputs["token_ids"]
    if isinstance(model, ReplaceMLM):
        logs = log_softmax(model.discriminator.head(hidden, everywhere))
        lm = -picked(picked_rows(logs, outputs), outputs["corrupted"].target_ids)
        lm = mean(lm, outputs["corrupted"].masking.weights)
    else:
        softmax = model.discriminator.vocabulary_head(hidden, everywhere)
        softmax = np.exp(picked(log_softmax(softmax), original))
        head = model.discriminator.head(hidden)
        copying = 1 / (1 + np.exp(np.array(head, "float64")))
        p = copying * (corrupted_ids == original) + (1 - copying) * softmax
        lm = mean(-np.log(p), inputs["padding_mask"])
    return mean(mlm, outputs["corrupted"].masking.weights), lm


def picked_rows(logs, outputs):
    positions = np.array(outputs["corrupted"].masking.positions)
    return np.take_along_axis(logs, positions[..., None], 1)


@both
def test_loss_equals_numpy(system, sizes, inputs):
    model = make(system, sizes, lm_weight=3.0)
    model.compile(optimizer=AdamW(1e-3))
    outputs = model(inputs)
    if system is ReplaceMLM:
        outputs = with_right_predictions(outputs, outputs["lm"])
    loss = float(model.compute_loss(inputs, y_pred=outputs))
    mlm, lm = numpy_loss(model, inputs, outputs)
    assert loss == pytest.approx(mlm + 3 * lm, rel=1e-5)
    metrics = {m.name: float(m.result()) for m in model.metrics}
    assert metrics["mlm_loss"] == pytest.approx(mlm, rel=1e-5)
    assert metrics["lm_loss"] == pytest.approx(lm, rel=1e-5)
    if system is ReplaceMLM:
        text = outputs["corrupted"]
        right = np.argmax(outputs["lm"], -1) == np.array(text.target_ids)
        expected = mean(right, text.masking.weights)
        assert expected > 0 and metrics["lm_accuracy"] == pytest.approx(expected)


@both
def test_no_network_reads_a_mask_token_but_the_generator(system, sizes, inputs):
    outputs = make(system, sizes, exclude_original=True)(inputs)
    chosen = np.array(outputs["mlm"].token_ids) == 4
    corrupted = np.array(outputs["corrupted"].token_ids)
    assert chosen.any()
    np.testing.assert_array_equal(corrupted != inputs["token_ids"], chosen)


@both
def test_each_loss_trains_its_network(system, sizes, inputs):
    model = make(system, sizes)
    embeddings = model.encoder.embeddings
    shared = {id(embeddings.token.embeddings), id(embeddings.position.embeddings)}
    mlm, lm = (gradients(model, inputs, [term]) for term in ("mlm", "lm"))
    for network, ours, theirs in (
        (model.generator, mlm, lm),
        (model.discriminator, lm, mlm),
    ):
        assert shared < {id(v) for v in network.trainable_variables}
        for v in network.trainable_variables:
            # a softmax does not see a constant added to every key's logit
            if "key/bias" not in v.path:
                assert np.abs(ours[id(v)]).max() > 0, v.path
                assert (np.abs(theirs[id(v)]).max() > 0) == (id(v) in shared), v.path


@both
def test_presets_keep_both_networks(system, sizes, inputs, tmp_path):
    model = make(system, sizes, lm_weight=2.0)
    model.save_to_preset(tmp_path / "preset")
    loaded = load_preset(tmp_path / "preset")
    assert type(loaded) is system and loaded.get_config() == model.get_config()
    for name in ("generator", "discriminator"):
        for ours, theirs in zip(
            model.networks[name].weights, loaded.networks[name].weights, strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)


@both
def test_costs(system):
    sizes = DETECTORS["base"]
    with weightless():
        main = Discriminator(sizes["discriminator"])
        generator = MaskedLMNetwork(complete_generator(sizes))
        model = system.from_preset("base")
        head = VocabularyHead(main.encoder)
    expected = main.encoder.flops(512, training=True)
    expected += generator.flops(512, 77, training=True)  # ceil(0.15 * 512)
    # Beside them and the discriminator's logits, in half of whose memory are gradients:
    kept = main.encoder.activation_bytes(8, 512, 4) + 8 * 77 * 30522 * 4
    if system is ReplaceMLM:
        expected += head.flops(77)
        kept += 2 * 8 * 77 * 30522 * 4
    else:
        expected += head.flops(512) + main.head.flops(512)
        kept += 2 * 8 * 16 * 30522 * 4  # a chunk
    assert model.forward_flops(512) == expected
    assert model.activation_bytes(8, 512) == kept


def test_a_model_that_detects_nothing_says_so(sizes, inputs):
    with pytest.raises(ValueError, match="ReplaceMLM does not learn to tell replaced"):
        make(ReplaceMLM, sizes).detect(inputs)
