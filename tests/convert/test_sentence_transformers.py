"""Vectors as sentence-transformers computes them from the files that we write.

tests/fixtures/record_sentence_transformers.py recorded them.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from keras_corrupt import models
from keras_corrupt.convert.conversion import convert
from keras_corrupt.downstream import SentenceEncoder
from keras_corrupt.scoring import embed_texts

ROOT = Path(__file__).parents[1] / "fixtures"
FILES = ("modules", "sentence_bert_config", "config_sentence_transformers")


@pytest.fixture
def recorded():
    with np.load(ROOT / "sentence_transformers.npz") as file:
        return dict(file)


@pytest.fixture
def encoder():
    return SentenceEncoder.from_preset(ROOT / "hugging_face/electra", max_length=12)


def content(directory, name):
    return json.loads((directory / f"{name}.json").read_text())


def classes(directory):
    entries = content(directory, "modules")
    return {entry["path"]: entry["type"].split(".")[-1] for entry in entries}


def test_their_vectors_are_ours(encoder, recorded):
    texts = recorded["texts"].tolist()
    np.testing.assert_allclose(encoder.encode(texts), recorded["unit"], atol=1e-5)
    electra = models.load_preset(ROOT / "hugging_face/electra")
    vectors = embed_texts(electra, texts)
    np.testing.assert_allclose(vectors, recorded["mean"], atol=1e-5)


def test_the_files_of_a_sentence_encoder(encoder, recorded, tmp_path):
    encoder.save_to_preset(tmp_path / "ours")
    convert(tmp_path / "ours", tmp_path / "theirs", "hugging_face")
    theirs = tmp_path / "theirs"
    assert classes(theirs) == {
        "": "Transformer",
        "1_Pooling": "Pooling",
        "2_Normalize": "Normalize",
    }
    assert all((theirs / folder).is_dir() for folder in classes(theirs))
    assert content(theirs, "sentence_bert_config")["max_seq_length"] == 12
    pooling = content(theirs / "1_Pooling", "config")
    assert pooling["word_embedding_dimension"] == 16
    modes = {n for n, value in pooling.items() if value is True}
    assert modes == {"pooling_mode_mean_tokens"}
    assert content(theirs, "config")["architectures"] == ["ElectraModel"]
    card = (theirs / "README.md").read_text()
    assert "library_name: sentence-transformers" in card
    with pytest.warns(UserWarning, match="head on it is new"):
        back = SentenceEncoder.from_preset(theirs, max_length=12)
    found = back.encode(recorded["texts"].tolist())
    np.testing.assert_allclose(found, recorded["unit"], atol=1e-5)


def test_a_pretrained_model_gets_them_on_request(tmp_path):
    source = ROOT / "hugging_face" / "electra"
    convert(source, tmp_path / "without", "hugging_face")
    convert(source, tmp_path / "with", "hugging_face", sentence_transformers=True)
    before, after = (
        {
            str(path.relative_to(tmp_path / name))
            for path in (tmp_path / name).rglob("*")
        }
        for name in ("without", "with")
    )
    added = {*(f"{name}.json" for name in FILES), "1_Pooling", "1_Pooling/config.json"}
    assert before | added == after and not before & added
    assert classes(tmp_path / "with") == {"": "Transformer", "1_Pooling": "Pooling"}
    maximum = content(tmp_path / "with", "sentence_bert_config")["max_seq_length"]
    assert maximum == 16
    with pytest.raises(ValueError, match="`sentence_transformers`.*hugging_face"):
        convert(source, tmp_path / "x", sentence_transformers=True)


def test_without_a_tokenizer_nothing_can_be_read(electra, tmp_path):
    electra.tokenizer = None
    electra.save_to_preset(tmp_path / "ours")
    with pytest.raises(ValueError, match="has no tokenizer"):
        convert(
            tmp_path / "ours",
            tmp_path / "theirs",
            "hugging_face",
            sentence_transformers=True,
        )
    assert not (tmp_path / "theirs").exists()
