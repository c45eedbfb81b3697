import keras
import numpy as np
import pytest

from keras_corrupt.corruption import crop_texts
from tests.conftest import make_inputs


def crop(inputs, fraction, seed=0):
    generator = keras.random.SeedGenerator(seed)
    cropped = crop_texts(inputs, fraction, generator, padding_id=7)
    return {name: np.array(array) for name, array in cropped.items()}


@pytest.mark.parametrize("fraction", [0.05, 0.7, 0.9, 1.0])
def test_a_crop_is_a_contiguous_part_behind_cls(fraction):
    inputs = make_inputs(batch=30, length=20)
    inputs["token_ids"][:, 1:] = np.arange(100, 119)  # each token is one of its kind
    inputs["token_ids"] *= inputs["padding_mask"]
    cropped = crop(inputs, fraction)
    assert cropped["token_ids"].shape == (30, 1 + -(-round(fraction * 100) * 19 // 100))
    for row in range(30):
        size = inputs["padding_mask"][row].sum() - 1
        kept = -(-round(fraction * 100) * size // 100)  # ceil, as integers
        assert cropped["padding_mask"][row].tolist() == [1] * (1 + kept) + [0] * (
            cropped["padding_mask"].shape[1] - 1 - kept
        )
        first, *rest = cropped["token_ids"][row][: 1 + kept]
        assert first == 2
        assert np.diff(rest).tolist() == [1] * (kept - 1)
        assert rest[0] >= 100 and rest[-1] < 100 + size
        assert (cropped["token_ids"][row][1 + kept :] == 7).all()
        source = np.array(rest) - 99
        expected = inputs["segment_ids"][row][source].tolist()
        assert cropped["segment_ids"][row][1 : 1 + kept].tolist() == expected


def test_every_start_is_as_likely():
    ids = np.tile(np.array([[2, *range(10, 20)]], "int32"), (6000, 1))
    inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
    starts = crop(inputs, 0.7)["token_ids"][:, 1] - 10
    counts = np.bincount(starts, minlength=4)
    assert len(counts) == 4  # 3 tokens are cut off, so 4 places
    assert abs(counts - 1500).max() < 5 * np.sqrt(1500)


@pytest.mark.parametrize(
    "text, kept",
    [([2, 9, 3], [2, 9, 3]), ([2, 3], [2, 3]), ([2], [2]), ([], [])],
    ids=len,
)
def test_short_texts_keep_what_they_have(text, kept):
    """Of three tokens a crop of 90% keeps both that are behind [CLS]."""
    ids = np.array([text + [0] * (5 - len(text))], "int32")
    mask = (ids > 0).astype("int32")
    cropped = crop({"token_ids": ids, "segment_ids": mask, "padding_mask": mask}, 0.9)
    assert cropped["token_ids"].tolist() == [kept + [7] * (5 - len(kept))]
    assert cropped["padding_mask"].tolist() == [[1] * len(kept) + [0] * (5 - len(kept))]
