"""ELECTRA's options of the thesis (5.3.1, 5.4.3, 5.5), and DeBERTaV3's sharing."""

import numpy as np
import pytest
from keras import ops

from keras_corrupt.corruption import Masking, corrupters
from keras_corrupt.downstream import TextClassifier
from keras_corrupt.models import (
    AdversarialElectra,
    CocoLM,
    Electra,
    Electric,
    ReplaceMLM,
    load_preset,
)
from keras_corrupt.training import AdamW
from tests.models.conftest import arrays, gradients

#: Logits of four tokens.
LOGITS = np.array([0.0, 1.0, 2.0, -1.0])


#: A discriminator that can be divided by three and by four.
WIDE = {
    "discriminator": {
        "vocabulary_size": 150,
        "hidden_size": 96,
        "intermediate_size": 192,
        "num_heads": 12,
    }
}


def scramble(model):
    rng = np.random.default_rng(0)
    for v in model.trainable_variables:
        v.assign(v + rng.normal(scale=0.3, size=v.shape))


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
    positions = np.arange(draws, dtype="int32")[None]
    everywhere = Masking(positions, np.ones((1, draws), "float32"))
    found = model.corrupter.fill(original, everywhere, logits).sampled_ids
    frequencies = np.bincount(np.array(found)[0], minlength=4) / draws
    # Five standard deviations of a frequency; of an impossible token there is none.
    margin = 5 * np.sqrt(expected * (1 - expected) / draws)
    assert (np.abs(frequencies - expected) <= margin).all()


@pytest.mark.parametrize("temperature", [0, -1.0, float("inf"), "hot"])
def test_temperatures_that_are_none(sizes, temperature):
    with pytest.raises(ValueError, match="`temperature` must be more than 0"):
        Electra(**sizes, temperature=temperature)


def rtd_loss(model, outputs):
    values, weights = map(np.array, model.objectives["rtd"].loss(outputs))
    return (values * weights).sum() / weights.sum(), weights


@pytest.mark.parametrize("where", ["all", "random", "masked"])
def test_the_discriminator_learns_where_it_should(sizes, inputs, where):
    """ELECTRA 15%: at ceil(0.15 n) random tokens of n, or at the masked ones."""
    model = Electra(**sizes, rtd_positions=where)
    outputs = model(inputs)
    found, weights = rtd_loss(model, outputs)

    real = inputs["padding_mask"]
    masked = np.zeros(real.shape)
    chosen = map(np.array, outputs["corrupted"].masking)
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
    d = 1 / (1 + np.exp(-np.array(outputs["rtd"].logits, "float64")))
    replaced = np.array(outputs["corrupted"].token_ids) != inputs["token_ids"]
    losses = -np.where(replaced, np.log(d), np.log(1 - d))
    assert found == pytest.approx((losses * learned).sum() / learned.sum(), rel=1e-5)


def test_metrics_are_of_all_tokens_wherever_it_learns(sizes, inputs):
    model = Electra(**sizes, rtd_positions="masked")
    model.compile(AdamW(1e-3))
    outputs = model(inputs)
    real = inputs["padding_mask"] == 1
    replaced = (np.array(outputs["corrupted"].token_ids) != inputs["token_ids"]) & real
    # All that is replaced is found, and as many others are taken for it, unmasked ones.
    flagged = replaced.copy()
    masked = np.array(outputs["corrupted"].masking.positions)
    others = real & ~replaced
    np.put_along_axis(others, masked, False, axis=1)
    flagged[np.unravel_index(np.flatnonzero(others)[: replaced.sum()], real.shape)] = 1
    logits = np.where(flagged, 3.0, -3.0).astype("float32")
    outputs["rtd"] = outputs["rtd"]._replace(logits=ops.convert_to_tensor(logits))
    model.compute_loss(inputs, y_pred=outputs)
    metrics = {m.name: float(m.result()) for m in model.metrics}
    assert metrics["replaced_fraction"] == pytest.approx(replaced.sum() / real.sum())
    assert metrics["rtd_precision"] == pytest.approx(0.5)
    assert metrics["rtd_recall"] == pytest.approx(1.0)
    # Ranked above: every token that is not replaced but those flagged, which are tied.
    rest = (real & ~flagged).sum()
    area = (rest + replaced.sum() / 2) / (rest + replaced.sum())
    assert metrics["rtd_auc"] == pytest.approx(area, abs=0.01)
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


@pytest.mark.parametrize("width", [0.25, 1 / 3, 0.5, 1, 2])
def test_the_generators_width_is_a_fraction(width):
    """Figure 5.4: hidden size, feed-forward size and heads, and nothing else."""
    model = Electra.from_preset("tiny", generator_width=width, **WIDE)
    generator = model.generator.encoder.architecture
    own = {"hidden_size": 96, "intermediate_size": 192, "num_heads": 12}
    assert {n: generator[n] for n in own} == {n: own[n] * width for n in own}
    main = model.encoder.architecture
    assert all(generator[n] == main[n] for n in main if n not in own)
    again = Electra.from_config(model.get_config())
    assert again.generator.encoder.architecture == generator


@pytest.mark.parametrize("width", [0, -1, 0.3, "half"])
def test_widths_that_make_no_sizes(width):
    with pytest.raises(ValueError, match="`generator_width` must be a fraction"):
        Electra.from_preset("tiny", generator_width=width, **WIDE)


@pytest.mark.parametrize("cls", [CocoLM, Electra, Electric, ReplaceMLM])
@pytest.mark.parametrize("size", ["embedding_size", "max_length"])
def test_a_generator_has_no_embeddings_of_its_own(cls, size):
    message = f"`generator` has {size}=64, but shares .* {size}=128. Leave it out"
    with pytest.raises(ValueError, match=message):
        cls.from_preset("tiny", generator={size: 64})
    assert cls.from_preset("tiny", generator={size: 128}).built


# === Two-stage and adversarial training ===


def test_the_second_stage_starts_from_the_generator(sizes, inputs):
    model = Electra(**sizes, generator_width=1, tied_embeddings="none")
    scramble(model)
    generator = [np.array(v) for v in model.generator.weights]
    model.start_from_generator()
    np.testing.assert_array_equal(
        model.encoder(inputs), model.generator.encoder(inputs)
    )
    found = gradients(model, inputs, ["rtd"])  # and shares nothing with it
    for v, before in zip(model.generator.weights, generator, strict=True):
        np.testing.assert_array_equal(v, before)
        assert np.abs(found[id(v)]).max() == 0
    with pytest.raises(ValueError, match="only; got .token_and_position"):
        Electra(**sizes, generator_width=1).start_from_generator()
    with pytest.raises(ValueError, match="of its size: set the `generator`'s hidden_s"):
        Electra(**sizes, tied_embeddings="none").start_from_generator()


def adversarial_numbers(model, outputs):
    """q, rewards and baselines at the masked positions, by the thesis's formulas."""
    o = arrays(outputs, "float64")
    q = np.exp(o["mlm"].logits)
    q /= q.sum(-1, keepdims=True)
    text = o["corrupted"]
    positions, sampled = (
        text.masking.positions.astype(int),
        text.sampled_ids.astype(int),
    )
    original = 1 / (1 + np.exp(np.take_along_axis(o["rtd"].logits, positions, 1)))
    right = np.where(sampled == text.target_ids, original, 1 - original)
    masked = {"token_ids": outputs["mlm"].token_ids}
    return q, sampled, -np.log(right), masked, o


def test_adversarial_losses_equal_numpy(sizes, inputs):
    sizes["discriminator"] |= {"dropout": 0.0, "attention_dropout": 0.0}
    model = AdversarialElectra(**sizes, reinforce_weight=3.0)
    scramble(model)
    model.compile(optimizer=AdamW(1e-3))
    outputs = model(inputs)
    loss = float(model.compute_loss(inputs, y_pred=outputs))
    q, sampled, reward, masked, o = adversarial_numbers(model, outputs)

    states = np.array(model.generator.encoder({**inputs, **masked}), "float64")
    positions, weights = o["corrupted"].masking
    states = np.take_along_axis(states, positions.astype(int)[..., None], 1)
    score = states @ np.array(model.generator.baseline.kernel, "float64")[:, 0]
    np.testing.assert_allclose(o["baseline_logits"], score, atol=1e-5)
    sigmoid = 1 / (1 + np.exp(-score))
    baseline = -np.log(sigmoid)

    def mean(x):
        return (x * weights).sum() / weights.sum()

    log_q = np.log(np.take_along_axis(q, sampled[..., None], -1)[..., 0])
    reinforce = mean(-log_q * (reward - baseline))
    target = np.exp(-reward)
    cross_entropy = mean(-target * np.log(sigmoid) - (1 - target) * np.log(1 - sigmoid))
    rtd, _ = rtd_loss(model, outputs)
    expected = 3 * reinforce + cross_entropy + 50 * rtd  # and no masked LM's
    assert loss == pytest.approx(expected, rel=1e-5)
    metrics = {m.name: float(m.result()) for m in model.metrics}
    assert metrics["reinforce_loss"] == pytest.approx(reinforce, rel=1e-4)
    assert metrics["baseline_loss"] == pytest.approx(cross_entropy, rel=1e-5)
    assert metrics["mlm_loss"] > 0


def test_the_generator_ascends_reinforces_gradient(sizes, inputs, monkeypatch):
    """In the logits it is the reward above the baseline, times (1[x] - q)."""
    sizes["discriminator"] |= {"dropout": 0.0, "attention_dropout": 0.0}
    model = AdversarialElectra(**sizes)
    scramble(model)
    kept = arrays(model(inputs))
    sampled_ids = ops.convert_to_tensor(kept["corrupted"].sampled_ids)
    monkeypatch.setattr(corrupters, "sample_tokens", lambda *_: sampled_ids)
    masking = kept["corrupted"].masking._asdict()
    static = {f"masked_{name}": x for name, x in masking.items()}
    found, baseline = (
        gradients(model, {**inputs, **static}, [term])
        for term in ("reinforce", "baseline")
    )
    q, sampled, reward, _, o = adversarial_numbers(model, kept)
    advantage = reward - np.log1p(np.exp(-o["baseline_logits"]))
    weights = o["corrupted"].masking.weights
    advantage *= weights / weights.sum()
    ascent = advantage[..., None] * (np.eye(50)[sampled] - q)
    np.testing.assert_allclose(
        found[id(model.generator.head.bias)], -ascent.sum((0, 1)), atol=1e-6
    )
    own = id(model.generator.baseline.kernel)
    assert np.abs(found[own]).max() == 0
    embeddings = model.discriminator.encoder.embeddings
    shared = {id(embeddings.token.embeddings), id(embeddings.position.embeddings)}
    for v in model.discriminator.trainable_variables:
        assert (np.abs(found[id(v)]).max() > 0) == (id(v) in shared), v.path
    for v in model.trainable_variables:  # the baseline's loss trains w alone
        assert (np.abs(baseline[id(v)]).max() > 0) == (id(v) == own), v.path


def test_adversarial_presets_and_options(sizes, tmp_path):
    model = AdversarialElectra(**sizes, reinforce_weight=2.0)
    scramble(model)
    model.save_to_preset(tmp_path / "preset")
    loaded = load_preset(tmp_path / "preset")
    assert type(loaded) is AdversarialElectra
    assert loaded.get_config() == model.get_config()
    np.testing.assert_array_equal(
        loaded.generator.baseline.kernel, model.generator.baseline.kernel
    )
    with pytest.raises(ValueError, match="leave out `temperature=2.0`"):
        AdversarialElectra(**sizes, temperature=2.0)


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
