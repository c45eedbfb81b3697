import pytest

from tests.cross_view.conftest import (
    make_parser,
    make_tagger,
    make_token_tagger,
    make_translator,
)


def test_an_update_is_three_passes_and_one_for_the_targets():
    alone, cross_view = make_tagger(views=[]), make_tagger(views=["forward", "full"])
    encoder = alone.encoder.flops(10, 20)
    # Hidden layers of 7 on both directions of 2 layers of 4, or on one direction.
    whole = 10 * (2 * 16 * 7 + 7 + 2 * 7 * 3 + 3)
    forward = 10 * (2 * 4 * 7 + 7 + 2 * 7 * 3 + 3)
    assert alone.update_flops(10) == 3 * (encoder + whole)
    unlabelled = 3 * (whole + forward) + encoder + whole
    expected = 3 * (encoder + whole) + unlabelled / 2
    assert cross_view.update_flops(10) == pytest.approx(expected)


def test_a_parser_scores_each_relation_of_each_head_of_each_word():
    alone, cross_view = make_parser(views=[]), make_parser(views=["forward_backward"])
    encoder = alone.encoder.flops(10, 20)

    def module(width):
        hidden = (11 + 10) * (2 * width * 7 + 7 + 7)  # the root and words; words
        by_relation = 10 * 4 * 2 * 7 * 7
        return hidden + by_relation + 10 * 11 * 4 * 2 * 7

    assert alone.update_flops(10) == 3 * (encoder + module(16))
    unlabelled = 3 * module(4) + encoder + module(16)
    expected = 3 * (encoder + module(16)) + unlabelled / 2
    assert cross_view.update_flops(10) == pytest.approx(expected)


def test_a_translator_searches_with_each_sequence_that_is_kept():
    alone = make_translator(views=[])
    cross_view = make_translator(views=["future", "word_dropout"], beam_size=3)
    encoder = alone.encoder.flops(10, 20)

    def lstm(width, hidden):  # projections of 3
        gates = 2 * width * 4 * hidden + 2 * 3 * 4 * hidden + 2 * 4 * hidden
        return gates + 18 * hidden + 2 * hidden * 3

    first = [2 * 8 * size + 2 * size for size in (5 + 3, 6 + 3)]
    decoder = 10 * (lstm(6, 5) + lstm(3, 6)) + sum(first)
    # Attention over 10 states of 8, a hidden layer of 7, 12 words and two classes.
    attention = 10 * (2 * 3 + 5 + 2 * 8)
    module = 10 * (2 * 8 * 3 + attention + 2 * 11 * 7 + 7 + 2 * 7 * 14)
    labelled = 3 * (encoder + decoder + module)
    assert alone.update_flops(10) == labelled
    unlabelled = labelled + labelled + encoder + 3 * (decoder + module)
    assert cross_view.update_flops(10) == (labelled + unlabelled) / 2


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


def test_modules_that_learn_labels_do_so_in_labelled_batches():
    for model, further in [
        (make_tagger(views=["full"]), 10 * (2 * 16 * 7 + 7 + 2 * 7 * 3 + 3)),
        (make_token_tagger(views=["full"]), 10 * (2 * 16 * 16 + 16 + 2 * 16 * 3 + 3)),
    ]:
        before = model.update_flops(10)
        model.modules_learn_labels = True
        assert model.update_flops(10) - before == pytest.approx(3 * further / 2)
    model = make_token_tagger(views=["future"])
    before, encoder = model.update_flops(10), model.tagger.encoder.flops(10)
    model.modules_learn_labels = True
    assert model.update_flops(10) - before == pytest.approx((3 * further + encoder) / 2)
