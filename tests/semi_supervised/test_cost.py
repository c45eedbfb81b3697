import pytest

from keras_corrupt.encoders.bilstm_cost import bilstm_flops
from tests.semi_supervised.conftest import make_parser, make_tagger, make_token_tagger


def test_an_update_is_three_passes_and_one_for_the_targets():
    alone, cross_view = make_tagger(views=[]), make_tagger(views=["forward", "full"])
    encoder = bilstm_flops(alone.encoder.sizes, 10, 20)
    # Hidden layers of 7 on both directions of 2 layers of 4, or on one direction.
    whole = 10 * (2 * 16 * 7 + 7 + 2 * 7 * 3 + 3)
    forward = 10 * (2 * 4 * 7 + 7 + 2 * 7 * 3 + 3)
    assert alone.update_flops(10) == 3 * (encoder + whole)
    unlabelled = 3 * (whole + forward) + encoder + whole
    expected = 3 * (encoder + whole) + unlabelled / 2
    assert cross_view.update_flops(10) == pytest.approx(expected)


def test_a_parser_scores_each_relation_of_each_head_of_each_word():
    alone, cross_view = make_parser(views=[]), make_parser(views=["forward_backward"])
    encoder = bilstm_flops(alone.encoder.sizes, 10, 20)

    def module(width):
        hidden = (11 + 10) * (2 * width * 7 + 7 + 7)  # the root and words; words
        by_relation = 10 * 4 * 2 * 7 * 7
        return hidden + by_relation + 10 * 11 * 4 * 2 * 7

    assert alone.update_flops(10) == 3 * (encoder + module(16))
    unlabelled = 3 * module(4) + encoder + module(16)
    expected = 3 * (encoder + module(16)) + unlabelled / 2
    assert cross_view.update_flops(10) == pytest.approx(expected)


@pytest.mark.parametrize("view, passes", [("word_dropout", 4), ("vat", 6)])
def test_a_baseline_is_a_pass_of_the_primary_module(view, passes):
    predicting = make_tagger(views=[]).update_flops(10) / 3
    model = make_tagger(views=[view])
    assert model.update_flops(10) == pytest.approx((3 + passes / 2) * predicting, 1e-4)


@pytest.mark.parametrize(
    "views, passes", [(["full"], 0), (["future"], 1), (["past", "forward"], 2)]
)
def test_each_direction_is_a_pass_of_a_transformer(views, passes):
    model = make_token_tagger(views=views)
    encoder = model.tagger.encoder.flops(10)
    primary = 10 * (2 * 16 * 3 + 3)
    module = 10 * (2 * 16 * 16 + 16 + 2 * 16 * 3 + 3)
    labelled = 3 * (encoder + primary)
    assert make_token_tagger(views=[]).update_flops(10) == labelled
    further = 3 * (passes * encoder + len(views) * module) + encoder + primary
    assert model.update_flops(10) == labelled + further / 2
