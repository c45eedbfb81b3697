import numpy as np
import pytest

from keras_corrupt.encoders import TransformerEncoder, masks
from tests.conftest import SIZES, make_inputs

CONFIG = SIZES["discriminator"] | {"initializer_range": 0.3}
RELATIVE = {"num_buckets": 8, "max_distance": 16}
#: May a query see a key?
SEES = {
    "bidirectional": lambda query, key: True,
    "left_to_right": lambda query, key: key <= query,
    "right_to_left": lambda query, key: key >= query,
}


@pytest.mark.parametrize("attention", SEES)
def test_masks_by_hand(attention):
    padding_mask = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]])
    mask = np.array(masks.MASKS[attention](padding_mask))
    mask = np.broadcast_to(mask, (3, 1, 4, 4))[:, 0]
    directed = attention != "bidirectional"
    for b, query, key in np.ndindex(3, 4, 4):
        expected = SEES[attention](query, key) and padding_mask[b, key] == 1
        assert mask[b, query, key] == (expected or (directed and query == key))


@pytest.mark.parametrize("relative_positions", [None, RELATIVE], ids=["", "relative"])
@pytest.mark.parametrize("attention", SEES)
def test_a_token_changes_the_outputs_that_may_see_it_and_no_others(
    attention, relative_positions
):
    encoder = TransformerEncoder(
        **CONFIG, attention=attention, relative_positions=relative_positions
    )
    inputs = make_inputs(batch=3, length=12)
    before = np.array(encoder(inputs))
    assert np.isfinite(before).all()
    for changed in range(12):
        token_ids = inputs["token_ids"].copy()
        token_ids[:, changed] = 49 - token_ids[:, changed]
        after = np.array(encoder({**inputs, "token_ids": token_ids}))
        moved = abs(after - before).max(axis=-1) > 1e-4
        still = abs(after - before).max(axis=-1) == 0
        for b, t in np.ndindex(3, 12):
            real = inputs["padding_mask"][b, changed] == 1
            sees = t == changed or (real and SEES[attention](t, changed))
            assert moved[b, t] if sees else still[b, t], (b, t, changed)


@pytest.mark.parametrize("attention", SEES)
def test_a_text_of_padding_alone_has_numbers(attention):
    encoder = TransformerEncoder(**CONFIG, attention=attention)
    inputs = make_inputs(batch=2, length=8)
    inputs["padding_mask"][1] = 0
    for training in (False, True):
        assert np.isfinite(np.array(encoder(inputs, training=training))).all()


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match="`attention`.*left_to_right.*got 'causal'"):
        TransformerEncoder(**CONFIG, attention="causal")
