import pytest

from keras_corrupt.encoders.bilstm_cost import bilstm_flops
from keras_corrupt.semi_supervised.cost import update_flops
from tests.semi_supervised.conftest import make_tagger


def test_an_update_is_three_passes_and_one_for_the_targets():
    alone, cross_view = make_tagger(views=[]), make_tagger(views=["forward", "full"])
    encoder = bilstm_flops(alone.encoder.sizes, 10, 20)
    # Hidden layers of 7 on both directions of 2 layers of 4, or on one direction.
    whole = 10 * (2 * 16 * 7 + 7 + 2 * 7 * 3 + 3)
    forward = 10 * (2 * 4 * 7 + 7 + 2 * 7 * 3 + 3)
    assert update_flops(alone, 10) == 3 * (encoder + whole)
    expected = 3 * (encoder + 2 * whole + forward) + (encoder + whole) / 2
    assert update_flops(cross_view, 10) == pytest.approx(expected)
