"""Other libraries' BERT and ELECTRA have none of ModernBERT's parts."""

import pytest

from keras_corrupt.convert.weights import encoder_of
from keras_corrupt.models import MaskedLM
from keras_corrupt.models.weightless import weightless
from tests.conftest import MODERN, SIZES


def model_of(options):
    encoder = SIZES["discriminator"] | {"num_layers": 2} | options
    with weightless():
        return MaskedLM(encoder, mask_id=4, unmaskable_ids=(0, 2, 3))


@pytest.mark.parametrize(
    "name",
    ["positions", "norm", "feed_forward", "use_bias", "local_window", "num_segments"],
)
def test_each_part_is_refused_by_its_name(name):
    message = rf"An encoder with {name}={MODERN[name]!r} has no counterpart"
    with pytest.raises(ValueError, match=message):
        encoder_of(model_of({name: MODERN[name]}))


def test_all_parts_are_named_and_those_of_bert_pass():
    with pytest.raises(ValueError, match="positions='rotary', norm='pre', feed"):
        encoder_of(model_of(MODERN))
    model = model_of({"rotary_theta": 10.0})  # plays no part
    assert encoder_of(model) is model.encoder
