"""Vectors of texts."""

import numpy as np
import pytest

from keras_corrupt.models import MaskedLM, TwoTower
from keras_corrupt.scoring import embed_texts
from tests.conftest import SIZES

ENCODER = SIZES["discriminator"] | {"vocabulary_size": 60, "initializer_range": 0.4}
TEXTS = ["the cat sat on a mat", "a dog", "", "the quick cat ran under the rug, slowly"]


@pytest.fixture
def model(tokenizer):
    return MaskedLM(ENCODER, tokenizer=tokenizer)


def test_a_vector_does_not_depend_on_the_texts_beside(model):
    """One by one there is no padding."""
    for pooling in ("mean", "cls"):
        vectors = embed_texts(model, TEXTS, pooling, batch_size=3)
        for text, vector in zip(TEXTS, vectors, strict=True):
            inputs = model.tokenizer.pack([text], 24)
            hidden = np.array(model.encoder(inputs))[0]
            expected = hidden.mean(axis=0) if pooling == "mean" else hidden[0]
            np.testing.assert_allclose(vector, expected, atol=1e-5)


def test_long_texts_are_cut(model):
    long = "a dog " * 30
    np.testing.assert_allclose(
        embed_texts(model, [long]), embed_texts(model, ["a dog " * 11]), atol=1e-6
    )


def test_a_preset_stands_for_its_model(model, tmp_path):
    model.save_to_preset(tmp_path / "preset")
    np.testing.assert_array_equal(
        embed_texts(tmp_path / "preset", TEXTS), embed_texts(model, TEXTS)
    )


def test_what_cannot_be_is_said(model, tokenizer):
    for texts, options, reason in (
        ("one", {}, "must be a list; got 'one'"),
        ([("a", "b")], {}, r"`texts\[0\]` must be a string"),
        ([], {}, "empty"),
        (["a"], {"pooling": "max"}, "'cls'.*got 'max'"),
        (["a"], {"batch_size": 0}, "1 or more"),
    ):
        with pytest.raises(ValueError, match=reason):
            embed_texts(model, texts, **options)
    with pytest.raises(ValueError, match="no .encoder."):
        embed_texts(TwoTower(ENCODER, tokenizer=tokenizer), ["a"])
    with pytest.raises(ValueError, match="tokenizer"):
        embed_texts(MaskedLM(ENCODER, mask_id=4, unmaskable_ids=(0,)), ["a"])
