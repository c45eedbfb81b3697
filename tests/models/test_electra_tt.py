import numpy as np
import pytest

from keras_corrupt.models import ElectraTT
from keras_corrupt.objectives import token_probabilities
from keras_corrupt.training import AdamW
from tests.models.conftest import with_right_predictions


def test_loss_equals_numpy(sizes, inputs):
    """The generator learns from every token, the discriminator as ELECTRA's does."""
    sizes["discriminator"] |= {"dropout": 0.0, "attention_dropout": 0.0}
    model = ElectraTT(**sizes, rtd_weight=7.0)
    model.compile(optimizer=AdamW(1e-3))
    outputs = with_right_predictions(
        outputs := model(inputs), outputs["predictions"].logits
    )
    loss = float(model.compute_loss(inputs, y_pred=outputs))
    ids, corrupted = inputs["token_ids"], np.array(outputs["corrupted"].token_ids)

    learned = ~np.isin(ids, [0, 2, 3])
    losses = np.array(model.generator.head.loss(model.generator(inputs), ids))
    replaced = ids != corrupted
    assert 0 < replaced.sum() <= np.array(outputs["corrupted"].masking.weights).sum()
    logits = np.array(model.discriminator({**inputs, "token_ids": corrupted}))
    d = 1 / (1 + np.exp(-logits.astype("float64")))
    rtd = -np.where(replaced, np.log(d), np.log(1 - d))[inputs["padding_mask"] == 1]
    expected = losses[learned].mean() + 7 * rtd.mean()
    assert loss == pytest.approx(expected, rel=1e-5)
    metrics = {m.name: float(m.result()) for m in model.metrics}
    assert metrics["rtd_loss"] == pytest.approx(rtd.mean(), rel=1e-5)
    assert metrics["replaced_fraction"] == pytest.approx(
        replaced.sum() / inputs["padding_mask"].sum()
    )
    predictions = outputs["predictions"]
    right = np.argmax(predictions.logits, -1) == predictions.target_ids
    weights = np.array(predictions.masking.weights)
    accuracy = (right * weights).sum() / weights.sum()
    assert accuracy > 0 and metrics["cloze_accuracy"] == pytest.approx(accuracy)


def test_the_exact_rule_inverts_what_a_discriminator_learns():
    """Texts of independent tokens: what is counted is the best that D can be."""
    rng = np.random.default_rng(0)
    p, q = np.array([0.9, 0.07, 0.03]), np.array([0.8, 0.1, 0.1])
    texts, n, k = 100_000, 10, 2
    originals = rng.choice(3, (texts, n), p=p)
    noise = rng.random((texts, n)).argsort(axis=1) < k
    corrupted = np.where(noise, rng.choice(3, (texts, n), p=q), originals)
    original = corrupted == originals
    counts = np.array([np.bincount(corrupted[original == x], None, 3) for x in (0, 1)])
    logits = np.log(counts[0] / counts[1])

    def estimate(rule):
        arguments = logits[None], np.log(q)[None], [k], [n], rule
        return np.array(token_probabilities.log_probabilities(*arguments))[0]

    errors = 4 * np.sqrt((1 / counts).sum(axis=0))
    assert errors.max() < 0.06
    assert (np.abs(estimate("exact") - np.log(p)) < errors).all()
    odds = np.log(p / (1 - p) * (1 - k / n * (1 - q)))
    assert (np.abs(estimate("thesis") - odds) < errors).all()
    assert estimate("thesis")[0] > np.log(p[0]) + 2.2 and estimate("thesis")[0] > 0


def test_the_rule_is_an_option_that_is_kept(sizes, inputs):
    model = ElectraTT(**sizes, probability_rule="thesis")
    assert model.get_config()["probability_rule"] == "thesis"
    ids = inputs["token_ids"]
    log_q = model.generator.head.log_probabilities(model.generator(inputs), ids)
    k = np.ceil(0.15 * inputs["padding_mask"].sum(1, keepdims=True) - 1e-9)
    n = (~np.isin(ids, [0, 2, 3])).sum(1, keepdims=True)
    expected = np.log(k / n) + np.array(log_q) - np.array(model.discriminator(inputs))
    found = np.array(model.token_log_probabilities(inputs))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match=r"\('exact', 'thesis'\); got 'nce'"):
        ElectraTT(**sizes, probability_rule="nce")


def test_costs_are_those_of_the_parts(sizes):
    model = ElectraTT(**sizes)
    networks = model.discriminator.encoder.flops(20, training=True)
    networks += 2 * model.generator.left_to_right.flops(20, training=True)
    heads = model.generator.head.flops(20) + model.generator.head.flops(3)
    heads += model.discriminator.head.flops(20)
    assert model.forward_flops(20) == networks + heads
    # Both towers need more than the discriminator, and 16 positions' logits beside it.
    towers = 2 * model.generator.left_to_right.activation_bytes(6, 20, 4)
    assert model.activation_bytes(6, 20) == towers + 2 * 6 * 16 * 50 * 4
