"""ELECTRA's options of the thesis (5.3.1, 5.4.3, 5.5), and DeBERTaV3's sharing."""

import numpy as np
import pytest
from keras import ops

from keras_corrupt.downstream import TextClassifier
from keras_corrupt.models import Electra
from tests.models.conftest import gradients

#: Logits of four tokens.
LOGITS = np.array([0.0, 1.0, 2.0, -1.0])


def softmax(x):
    return np.exp(x) / np.exp(x).sum()


@pytest.mark.parametrize(
    "options, expected",
    [
        ({}, softmax(LOGITS)),
        ({"temperature": 2.0}, softmax(LOGITS / 2)),
        ({"exclude_original": True}, softmax(LOGITS + [0, -np.inf, 0, 0])),
        (
            {"temperature": 0.5, "exclude_original": True},
            softmax(2 * LOGITS + [0, -np.inf, 0, 0]),
        ),
    ],
    ids=str,
)
def test_samples_follow_the_softmax_that_is_asked_for(sizes, options, expected):
    draws = 20_000
    model = Electra(**sizes, **options)
    logits = ops.convert_to_tensor(np.tile(LOGITS.astype("float32"), (1, draws, 1)))
    original = np.full((1, draws), 1, "int32")
    found = model.sample_replacements(None, None, original, logits, training=False)
    frequencies = np.bincount(np.array(found)[0], minlength=4) / draws
    # Five standard deviations of a frequency; of an impossible token there is none.
    margin = 5 * np.sqrt(expected * (1 - expected) / draws)
    assert (np.abs(frequencies - expected) <= margin).all()


@pytest.mark.parametrize("temperature", [0, -1.0, float("inf"), "hot"])
def test_temperatures_that_are_none(sizes, temperature):
    with pytest.raises(ValueError, match="`temperature` must be more than 0"):
        Electra(**sizes, temperature=temperature)


def rtd_loss(model, outputs):
    values, weights = map(np.array, model.loss_terms(outputs)["rtd"])
    return (values * weights).sum() / weights.sum(), weights


@pytest.mark.parametrize("where", ["all", "random", "masked"])
def test_the_discriminator_learns_where_it_should(sizes, inputs, where):
    """ELECTRA 15%: at ceil(0.15 n) random tokens of n, or at the masked ones."""
    model = Electra(**sizes, rtd_positions=where)
    outputs = model(inputs)
    found, weights = rtd_loss(model, outputs)

    real = inputs["padding_mask"]
    masked = np.zeros(real.shape)
    chosen = np.array(outputs["masked_positions"]), np.array(outputs["masked_weights"])
    for row, (positions, used) in enumerate(zip(*chosen, strict=True)):
        masked[row, positions[used > 0]] = 1
    if where == "random":
        assert (weights <= real).all() and set(weights.ravel()) == {0, 1}
        expected = np.ceil(0.15 * real.sum(1) - 1e-6)
        np.testing.assert_array_equal(weights.sum(1), expected)
        assert (weights != masked).any()
        assert (weights != rtd_loss(model, model(inputs))[1]).any()  # drawn anew
        masked = weights
    learned = real if where == "all" else masked
    d = 1 / (1 + np.exp(-np.array(outputs["rtd_logits"], "float64")))
    replaced = np.array(outputs["corrupted_ids"]) != inputs["token_ids"]
    losses = -np.where(replaced, np.log(d), np.log(1 - d))
    assert found == pytest.approx((losses * learned).sum() / learned.sum(), rel=1e-5)


def test_metrics_are_of_all_tokens_wherever_it_learns(sizes, inputs):
    outputs = Electra(**sizes, rtd_positions="masked")(inputs)
    np.testing.assert_array_equal(outputs["rtd_weights"], inputs["padding_mask"])
    with pytest.raises(ValueError, match="`rtd_positions` must be one of.*got 'some'"):
        Electra(**sizes, rtd_positions="some")


def test_all_weights_can_be_tied(sizes, inputs):
    model = Electra(**{**sizes, "generator": {}}, tied_embeddings="everything")
    ours, theirs = (
        {id(v) for v in network.encoder.trainable_variables}
        for network in (model.generator, model.discriminator)
    )
    assert ours == theirs
    for term in ("mlm", "rtd"):  # both losses train all layers
        found = gradients(model, inputs, [term])
        for layer in model.encoder.layers_:
            assert np.abs(found[id(layer.intermediate.kernel)]).max() > 0
    with pytest.raises(ValueError, match="hidden_size=16, .*num_heads=2; got 8, 16, 1"):
        Electra(**sizes, tied_embeddings="everything")


# === Gradient-disentangled embedding sharing ===


@pytest.fixture
def disentangled(sizes, tokenizer):
    sizes["discriminator"] |= {"vocabulary_size": 60}
    model = Electra(
        **sizes, tied_embeddings="gradient_disentangled", tokenizer=tokenizer
    )
    return model


def tables(model):
    embeddings = model.discriminator.encoder.embeddings
    return embeddings.token, embeddings.position


def scramble(model):
    rng = np.random.default_rng(0)
    for v in model.trainable_variables:
        v.assign(v + rng.normal(scale=0.3, size=v.shape))


def test_each_loss_reaches_its_own_table(disentangled, inputs):
    generator = disentangled.generator.encoder.embeddings
    mlm, rtd = (gradients(disentangled, inputs, [term]) for term in ("mlm", "rtd"))
    for table, base in zip(
        tables(disentangled), (generator.token, generator.position), strict=True
    ):
        assert table.base is base
        difference = table.difference.embeddings
        np.testing.assert_array_equal(difference, np.zeros(difference.shape))
        assert np.abs(mlm[id(base.embeddings)]).max() > 0
        assert np.abs(rtd[id(base.embeddings)]).max() == 0
        assert np.abs(mlm[id(difference)]).max() == 0
        assert np.abs(rtd[id(difference)]).max() > 0


def test_the_discriminator_reads_the_sum_and_so_does_what_is_fine_tuned(
    disentangled, inputs, tmp_path
):
    scramble(disentangled)
    for table in tables(disentangled):
        summed = np.array(table.base.embeddings) + np.array(table.difference.embeddings)
        np.testing.assert_allclose(table(np.arange(3)), summed[:3], rtol=1e-6)
    expected = disentangled.discriminator.encoder(inputs)
    np.testing.assert_allclose(disentangled.encoder(inputs), expected, atol=1e-6)

    disentangled.save_to_preset(tmp_path / "preset")
    loaded = Electra.from_preset(tmp_path / "preset")
    for ours, theirs in zip(tables(disentangled), tables(loaded), strict=True):
        for name in ("base", "difference"):
            np.testing.assert_array_equal(
                getattr(ours, name).embeddings, getattr(theirs, name).embeddings
            )
    assert tables(loaded)[0].base is loaded.generator.encoder.embeddings.token

    classifier = TextClassifier.from_preset(tmp_path / "preset", labels=["a", "b"])
    np.testing.assert_allclose(classifier.encoder(inputs), expected, atol=1e-6)
    token = classifier.encoder.embeddings.token.embeddings
    base, difference = tables(disentangled)[0].base, tables(disentangled)[0].difference
    summed = np.array(base.embeddings) + np.array(difference.embeddings)
    np.testing.assert_allclose(token, summed, atol=1e-6)
