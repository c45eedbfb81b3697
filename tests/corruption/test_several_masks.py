"""Masks of a sequence that have nothing in common (fully-explored masks)."""

import keras
import numpy as np
import pytest

from keras_corrupt.corruption import choose_positions, choose_spans, choose_words
from tests.conftest import make_inputs

UNMASKABLE = (0, 2, 3)
STARTS = np.arange(50) % 3 > 0
WAYS = {
    "token": lambda inputs, rate, seed, k: choose_positions(
        inputs, rate, UNMASKABLE, seed, k
    ),
    "word": lambda inputs, rate, seed, k: choose_words(
        inputs, rate, UNMASKABLE, seed, STARTS, k
    ),
    "span": lambda inputs, rate, seed, k: choose_spans(
        inputs, rate, UNMASKABLE, seed, STARTS, 2.0, num_masks=k
    ),
}


def masks_of(way, inputs, rate, num_masks, seed=0):
    """Returns booleans `[batch, masks, length]`, and checks that none repeats."""
    masking = WAYS[way](inputs, rate, keras.random.SeedGenerator(seed), num_masks)
    batch, length = inputs["token_ids"].shape
    masks = np.zeros((batch * num_masks, length), int)
    rows = np.arange(len(masks))[:, None]
    np.add.at(masks, (rows, masking.positions), np.array(masking.weights, int))
    assert masks.max() <= 1
    return masks.reshape(batch, num_masks, length)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rate, num_masks", [(0.15, 3), (0.125, 8), (0.5, 2)])
def test_they_have_no_position_in_common(way, rate, num_masks):
    inputs = make_inputs(batch=40, length=23)
    masks = masks_of(way, inputs, rate, num_masks)
    maskable = inputs["padding_mask"] * ~np.isin(inputs["token_ids"], UNMASKABLE)
    assert (masks.sum(axis=1) <= maskable).all()
    assert (masks.sum(axis=(0, 2)) > 0).all()
    if way == "token":  # all of a size, which is that of one mask alone if they fit
        wanted = np.ceil(rate * inputs["padding_mask"].sum(axis=1) - 1e-4)
        size = np.minimum(wanted, maskable.sum(axis=1) // num_masks)
        assert (masks.sum(axis=2) == size[:, None]).all()
    else:  # pieces of a word are in one mask
        inside = ~STARTS[inputs["token_ids"]][:, None, 1:] & (
            maskable[:, None, :-1] > 0
        )
        inside = inside & (maskable[:, None, 1:] > 0)
        assert (masks[..., 1:] == masks[..., :-1])[
            np.repeat(inside, num_masks, 1)
        ].all()


def test_each_alone_is_as_uniform_as_one():
    one = make_inputs(batch=1, length=12)
    many = {name: np.repeat(array, 9000, axis=0) for name, array in one.items()}
    masks = masks_of("token", many, 0.25, 3)
    maskable = ~np.isin(one["token_ids"][0], UNMASKABLE)
    p = 3 / maskable.sum()  # 3 of 12 tokens
    deviation = np.sqrt(9000 * p * (1 - p))
    counts = masks.sum(axis=0)[:, maskable]
    assert counts.shape == (3, 9)
    assert (abs(counts - 9000 * p) < 4.5 * deviation).all()
    # Which positions a mask has together is not decided by the others either.
    both = (masks[:, 1, :, None] * masks[:, 1, None, :]).sum(axis=0)[maskable][
        :, maskable
    ]
    pairs = both[np.triu_indices(9, 1)]
    expected = 9000 * 3 * 2 / (9 * 8)
    assert abs(pairs - expected).max() < 5 * np.sqrt(expected)


def test_one_mask_is_drawn_as_ever():
    inputs = make_inputs()
    masking = WAYS["token"](inputs, 0.15, keras.random.SeedGenerator(3), 1)
    generator = keras.random.SeedGenerator(3)
    keys = keras.random.uniform(inputs["token_ids"].shape, seed=generator)
    maskable = inputs["padding_mask"] * ~np.isin(inputs["token_ids"], UNMASKABLE)
    keys = np.where(maskable, np.array(keys), -1)
    expected = np.argsort(-keys, axis=1, kind="stable")[:, :3]
    weights = np.array(masking.weights) > 0
    np.testing.assert_array_equal(
        np.array(masking.positions)[weights], expected[weights]
    )
