"""Rows of several texts: what a model makes of them, beside one text a row."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_corrupt.downstream import TextClassifier
from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.models import CocoLM, Electric, MaskedLM, Teams
from tests.conftest import MODERN, SIZES, loss_and_gradients, make_inputs
from tests.models.test_modern_encoders import make

#: Where the texts of `one_a_row` stand in `filled`: row and first position.
PLACES = [(0, 0), (0, 9), (0, 16), (1, 0), (1, 12)]
LENGTHS = [9, 7, 8, 12, 5]


def one_a_row():
    """Five texts, each with two masked positions; the fifth has a masked one only."""
    rng = np.random.default_rng(0)
    mask = (np.arange(24) < np.array(LENGTHS)[:, None]).astype("int32")
    segments = (np.arange(24) >= 4) * mask
    positions = np.array([[1, 5], [2, 4], [1, 6], [7, 9], [3, 0]], "int32")
    return {
        "token_ids": rng.integers(5, 50, (5, 24)).astype("int32") * mask,
        "segment_ids": segments.astype("int32"),
        "padding_mask": mask,
        "masked_positions": positions,
        "masked_weights": np.array([[1, 1]] * 4 + [[1, 0]], "float32"),
    }


def filled():
    """The same texts in two rows, the second with padding."""
    texts = one_a_row()
    names = ("token_ids", "segment_ids", "padding_mask")
    rows = {name: np.zeros((2, 24), "int32") for name in (*names, "text_ids")}
    positions, weights = np.zeros((2, 6), "int32"), np.zeros((2, 6), "float32")
    numbers = [1, 2, 3, 1, 2]
    for text, ((row, start), length) in enumerate(zip(PLACES, LENGTHS, strict=True)):
        for name in names:
            rows[name][row, start : start + length] = texts[name][text, :length]
        rows["text_ids"][row, start : start + length] = numbers[text]
        slots = slice(2 * numbers[text] - 2, 2 * numbers[text])
        positions[row, slots] = start + texts["masked_positions"][text]
        weights[row, slots] = texts["masked_weights"][text]
    return rows | {"masked_positions": positions, "masked_weights": weights}


ENCODERS = {
    "bert": {"num_layers": 2},
    "modern": MODERN | {"num_layers": 2, "rotary_theta": 1e4},
    "relative": {
        "num_layers": 2,
        "attention": "left_to_right",
        "relative_positions": {"num_buckets": 8, "max_distance": 16},
    },
}


@pytest.mark.parametrize("encoder", ENCODERS)
def test_loss_and_gradients_are_those_of_one_text_a_row(encoder):
    # Weights of this size leave rounding a quarter of the bound.
    keras.utils.set_random_seed(2)
    sizes = SIZES["discriminator"] | {"dropout": 0.0, "attention_dropout": 0.0}
    model = MaskedLM(
        sizes | ENCODERS[encoder] | {"initializer_range": 0.1},
        keep_rate=0.0,
        random_rate=0.0,
        **{name: SIZES[name] for name in ("mask_id", "unmaskable_ids")},
    )

    def loss(inputs):
        outputs = model(inputs, training=True)
        return model.compute_loss(x=inputs, y_pred=outputs)

    value, gradients = loss_and_gradients(lambda: loss(filled()), model)
    expected, expected_gradients = loss_and_gradients(lambda: loss(one_a_row()), model)
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    largest = max(abs(gradient).max() for gradient in expected_gradients.values())
    assert largest > 0.1
    for name, gradient in gradients.items():
        np.testing.assert_allclose(
            gradient, expected_gradients[name], rtol=1e-6, atol=1e-6 * largest
        )
    # Without the key, texts read each other.
    mixed = {name: array for name, array in filled().items() if name != "text_ids"}
    assert abs(float(loss(mixed)) - expected) > 1e-3


@pytest.mark.parametrize("system", [Electric, Teams, CocoLM])
def test_every_encoder_is_told(system, monkeypatch):
    seen = []
    attention_mask = TransformerEncoder.attention_mask

    def spied(self, inputs, *args):
        seen.append("text_ids" in inputs)
        return attention_mask(self, inputs, *args)

    monkeypatch.setattr(TransformerEncoder, "attention_mask", spied)
    rows = {name: x for name, x in filled().items() if "masked" not in name}
    make(system, **{"sequence_task": "none"} if system is CocoLM else {})(rows)
    assert len(seen) == (3 if system is Electric else 2) and all(seen)


def test_models_that_read_one_text_a_row(tokenizer):
    with pytest.raises(ValueError, match="CocoLM reads one text a row, and `text_ids`"):
        make(CocoLM)(filled())
    encoder = SIZES["discriminator"] | {"vocabulary_size": tokenizer.vocabulary_size}
    classifier = TextClassifier(encoder, tokenizer, labels=["a", "b"])
    with pytest.raises(ValueError, match="TextClassifier reads one text a row"):
        classifier(filled())


def test_numbers_of_texts_have_the_shape_of_token_ids():
    inputs = make_inputs()
    wrong = inputs | {"text_ids": ops.ones((6, 19), "int32")}
    with pytest.raises(ValueError, match=r"text_ids \(int32 \(6, 19\)\)"):
        make(MaskedLM)(wrong)
