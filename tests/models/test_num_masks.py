"""Several masks of each sequence in a training step."""

import numpy as np
import pytest

from keras_corrupt.models import CocoLM, Electra, MaskedLM, TwoTower
from tests.conftest import SIZES, make_inputs
from tests.models.conftest import gradients

IDS = {"mask_id": 4, "unmaskable_ids": (0, 2, 3)}


def masked_lm(**options):
    quiet = {"dropout": 0.0, "attention_dropout": 0.0}
    encoder = {**SIZES["discriminator"], **quiet}
    options = {"keep_rate": 0.0, "random_rate": 0.0, **IDS, **options}
    return MaskedLM(encoder, **options)


def test_the_gradient_is_the_mean_of_the_masks_gradients():
    model = masked_lm(num_masks=3)
    inputs = make_inputs(batch=4)
    # The masks that the step draws, one at a time as static masks.
    state = np.array(model.seed_generator.state)
    outputs = model(inputs, training=True)
    positions, weights = (np.array(x).reshape(4, 3, -1) for x in outputs["mlm"].masking)
    assert outputs["mlm"].token_ids.shape == (12, 20)
    model.seed_generator.state.assign(state)
    together = gradients(model, inputs, ["mlm"])
    model.masker.options["num_masks"] = 1
    alone = [
        gradients(
            model,
            {
                **inputs,
                "masked_positions": positions[:, k],
                "masked_weights": weights[:, k],
            },
            ["mlm"],
        )
        for k in range(3)
    ]
    for key, gradient in together.items():
        mean = np.mean([other[key] for other in alone], axis=0)
        np.testing.assert_allclose(gradient, mean, rtol=2e-4, atol=2e-6)


def test_independent_masks_overlap_and_disjoint_ones_do_not():
    inputs = make_inputs(batch=8)
    for disjoint in (True, False):
        model = masked_lm(num_masks=3, mask_rate=0.3, disjoint_masks=disjoint)
        outputs = model(inputs, training=True)
        masks = np.zeros((24, 20), int)
        rows = np.arange(24)[:, None]
        weights = np.array(outputs["mlm"].masking.weights, int)
        np.add.at(masks, (rows, np.array(outputs["mlm"].masking.positions)), weights)
        assert (masks.reshape(8, 3, 20).sum(axis=1).max() > 1) is not disjoint


def test_validation_has_one_mask():
    model = masked_lm(num_masks=3)
    assert model(make_inputs(), training=False)["mlm"].token_ids.shape == (6, 20)


def test_weights_of_sequences_hold_for_all_their_masks():
    model = masked_lm(num_masks=2)
    inputs = make_inputs(batch=4)
    outputs = model(inputs, training=True)
    weight = np.array([0.0, 2.0, 1.0, 0.5], "float32")
    loss = model.compute_loss({**inputs, "sample_weight": weight}, y_pred=outputs)
    values, weights = (np.array(x) for x in model.objectives["mlm"].loss(outputs))
    weights = weights * np.repeat(weight, 2)[:, None]
    expected = (values * weights).sum() / weights.sum()
    np.testing.assert_allclose(float(loss), expected, rtol=1e-5)


def test_systems_with_a_generator_have_them_too(sizes):
    model = Electra(**sizes, num_masks=2)
    outputs = model(make_inputs(), training=True)
    assert outputs["rtd"].logits.shape == (12, 20)
    replaced = np.array(outputs["rtd"].replaced).reshape(6, 2, 20)
    assert (replaced.sum(axis=1) <= 1).all() and replaced.any()
    assert model.from_config(model.get_config()).masker.num_masks == 2


@pytest.mark.parametrize(
    "options, message",
    [
        ({"num_masks": 0}, "`num_masks` must be a whole number from 1"),
        ({"num_masks": 2.5}, "`num_masks` must be a whole number from 1"),
        ({"num_masks": 8}, "`num_masks=8`.*`mask_rate` of 0.125 at most"),
    ],
)
def test_what_cannot_be_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        masked_lm(**options)
    assert masked_lm(num_masks=8, disjoint_masks=False).masker.num_masks == 8


@pytest.mark.parametrize("system", [CocoLM, TwoTower])
def test_systems_of_one_mask_refuse_more(system):
    with pytest.raises(
        ValueError, match=f"{system.__name__} has one mask.*num_masks=2"
    ):
        system.from_preset("tiny", num_masks=2)


def test_static_masks_are_one_for_each_sequence():
    model = masked_lm(num_masks=2)
    static = {"masked_positions": np.ones((6, 2), "int32")}
    static["masked_weights"] = np.ones((6, 2), "float32")
    with pytest.raises(ValueError, match="static masking.*`num_masks=2`"):
        model({**make_inputs(), **static}, training=True)
