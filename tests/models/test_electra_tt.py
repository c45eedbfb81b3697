import numpy as np
import pytest

from keras_corrupt.models import ElectraTT
from keras_corrupt.models.electra_tt import cost
from keras_corrupt.training import AdamW
from tests.models.conftest import with_right_predictions


def test_loss_equals_numpy(sizes, inputs):
    """The generator learns from every token, the discriminator as ELECTRA's does."""
    sizes["discriminator"] |= {"dropout": 0.0, "attention_dropout": 0.0}
    model = ElectraTT(**sizes, rtd_weight=7.0)
    model.compile(optimizer=AdamW(1e-3))
    outputs = with_right_predictions(model(inputs), "sampled_logits")
    loss = float(model.compute_loss(inputs, y_pred=outputs))
    ids, corrupted = inputs["token_ids"], np.array(outputs["corrupted_ids"])

    learned = ~np.isin(ids, [0, 2, 3])
    losses = np.array(model.generator.head.loss(model.generator(inputs), ids))
    replaced = ids != corrupted
    assert 0 < replaced.sum() <= np.array(outputs["masked_weights"]).sum()
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
    right = np.argmax(outputs["sampled_logits"], -1) == outputs["target_ids"]
    weights = np.array(outputs["masked_weights"])
    accuracy = (right * weights).sum() / weights.sum()
    assert accuracy > 0 and metrics["cloze_accuracy"] == pytest.approx(accuracy)


def test_costs_are_those_of_the_parts(sizes):
    model = ElectraTT(**sizes)
    counts = cost.parameters(model.get_config())
    assert counts["total"] == model.count_params()
    networks = model.discriminator.encoder.flops(20, training=True)
    networks += 2 * model.generator.left_to_right.flops(20, training=True)
    heads = model.generator.head.flops(20) + model.generator.head.flops(3)
    assert model.forward_flops(20) == networks + heads + model.discriminator.head.flops(
        20
    )
