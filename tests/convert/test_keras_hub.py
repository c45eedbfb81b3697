"""KerasHub's presets, written and read beside the library itself."""

import keras_hub
import numpy as np
import pytest

from keras_corrupt import models
from keras_corrupt.convert.conversion import convert
from keras_corrupt.models import Electra, MaskedLM
from tests.conftest import SIZES, make_inputs
from tests.convert.conftest import (
    assert_close,
    assert_same_weights,
    scrambled,
    written,
)

SIZE = {
    **{"num_layers": 2, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 24},
    "max_sequence_length": 24,
}
NEW_HEAD = "head on it is new"
ENCODER = SIZES["discriminator"] | {"vocabulary_size": 60, "approximate_gelu": True}


def backbones():
    return {
        "electra": keras_hub.models.ElectraBackbone(
            vocab_size=60, embedding_dim=12, **SIZE
        ),
        "bert": keras_hub.models.BertBackbone(vocabulary_size=60, **SIZE),
    }


@pytest.mark.parametrize(("kind", "cls"), [("electra", Electra), ("bert", MaskedLM)])
def test_their_backbone_is_read(kind, cls, tokenizer, tmp_path):
    backbone = scrambled(backbones()[kind])
    backbone.save_to_preset(str(tmp_path))
    keras_hub.models.BertTokenizer(
        vocabulary=tokenizer.vocabulary, lowercase=True, strip_accents=True
    ).save_to_preset(str(tmp_path))
    with pytest.warns(UserWarning, match=NEW_HEAD):
        model = models.load_preset(tmp_path)
    assert type(model) is cls
    assert model.tokenizer.fingerprint == tokenizer.fingerprint
    inputs = make_inputs()
    made = model.encoder(inputs)
    assert_close(made, backbone(inputs)["sequence_output"], inputs)


@pytest.mark.parametrize("embedding_size", [12, 16])
def test_ours_is_written_and_comes_back(embedding_size, tokenizer, tmp_path):
    model = MaskedLM({**ENCODER, "embedding_size": embedding_size}, tokenizer=tokenizer)
    theirs = written(model, tmp_path, "keras_hub")
    backbone = keras_hub.models.Backbone.from_preset(str(theirs))
    inputs = make_inputs()
    made = backbone(inputs)
    assert_close(made["sequence_output"], model.encoder(inputs), inputs)
    pooled = np.tanh(made["sequence_output"][:, 0])
    np.testing.assert_allclose(made["pooled_output"], pooled, atol=1e-6)
    with pytest.warns(UserWarning, match=NEW_HEAD):
        back = models.load_preset(theirs)
    assert_same_weights(model.encoder, back.encoder)
    assert back.tokenizer.fingerprint == tokenizer.fingerprint


def test_their_tokenizer_and_classifier_read_ours(tokenizer, tmp_path):
    model = MaskedLM({**ENCODER, "embedding_size": 16}, tokenizer=tokenizer)
    theirs = str(written(model, tmp_path, "keras_hub"))
    texts = ["The cats sat, on a rúg.", "a dog"]
    ids = keras_hub.models.Tokenizer.from_preset(theirs)(texts)
    assert [list(row) for row in ids] == tokenizer.encode_batch(texts)
    classifier = keras_hub.models.TextClassifier.from_preset(theirs, num_classes=3)
    assert classifier.predict(texts, verbose=0).shape == (2, 3)


def test_gelu_is_refused_unless_asked_for(electra, tmp_path):
    with pytest.raises(ValueError, match="tanh approximation alone.*1e-3"):
        written(electra, tmp_path, "keras_hub")
    convert(
        tmp_path / "preset", tmp_path / "theirs", "keras_hub", approximate_gelu=True
    )
    with pytest.warns(UserWarning, match=NEW_HEAD):
        back = models.load_preset(tmp_path / "theirs")
    assert_same_weights(electra.encoder, back.encoder)
    assert back.encoder.approximate_gelu


def test_other_presets_of_theirs_are_refused(tmp_path):
    keras_hub.models.BertTokenizer(
        vocabulary=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    ).save_to_preset(str(tmp_path))
    (tmp_path / "tokenizer.json").rename(tmp_path / "config.json")
    with pytest.raises(ValueError, match="is a BertTokenizer; ElectraBackbone"):
        models.load_preset(tmp_path)
