"""ONNX and LiteRT, by their own runtimes; skipped where those are not installed."""

import json
import sys

import keras
import numpy as np
import pytest

from keras_corrupt.convert.check import make_inputs
from keras_corrupt.convert.conversion import TARGETS, convert
from keras_corrupt.downstream import (
    MultiLabelClassifier,
    SentenceEncoder,
    SpanExtractor,
    TextClassifier,
    TokenTagger,
)
from keras_corrupt.models import Electra, MaskedLM
from tests.conftest import SIZES
from tests.convert.conftest import assert_close, scrambled, written
from tests.downstream.conftest import ENCODER

NEEDED = {"onnx": ("tf2onnx", "onnxruntime"), "litert": ("ai_edge_litert",)}


@pytest.fixture(params=NEEDED)
def to(request):
    for name in NEEDED[request.param]:
        pytest.importorskip(name)
    return request.param


@pytest.mark.parametrize("cls", [Electra, MaskedLM])
def test_a_pretrained_model(cls, to, tokenizer, tmp_path):
    sizes = SIZES["discriminator"] | {"vocabulary_size": tokenizer.vocabulary_size}
    if cls is Electra:
        model = scrambled(Electra(sizes, SIZES["generator"], tokenizer=tokenizer))
    else:
        relative = {"num_buckets": 8, "max_distance": 16}
        sizes |= {"relative_positions": relative, "approximate_gelu": True}
        model = scrambled(MaskedLM(sizes, tokenizer=tokenizer))
    directory = written(model, tmp_path, to)
    assert (directory / "tokenizer.json").is_file()
    for length in (3, 24):
        inputs = make_inputs(model.encoder)
        inputs = {n: np.resize(x, (2, length)) for n, x in inputs.items()}
        found = TARGETS[to].outputs(directory, inputs)
        assert_close(found.pop("hidden"), model.encoder(inputs), inputs)
        if cls is Electra:
            assert_close(found.pop("rtd"), model.discriminator(inputs), inputs)
        assert not found


@pytest.mark.parametrize(
    "cls", [TextClassifier, MultiLabelClassifier, TokenTagger, SpanExtractor]
)
def test_a_fine_tuned_model(cls, to, tokenizer, tmp_path):
    labels = ["bad", "fine", "good"]
    spans = cls is SpanExtractor
    arguments = {"head_type": "bert"} if spans else {"labels": labels}
    model = scrambled(cls(ENCODER, tokenizer, **arguments))
    directory = written(model, tmp_path, to)
    inputs = make_inputs(model.encoder)
    found = TARGETS[to].outputs(directory, inputs)
    hidden = model.encoder(inputs)
    if cls in (TextClassifier, MultiLabelClassifier):
        logits = model.head(hidden[:, 0])
        np.testing.assert_allclose(found["logits"], logits, atol=1e-5, rtol=0)
    elif spans:
        assert_close(found["spans"], model.head.start_and_end(hidden), inputs)
    else:
        assert_close(found["logits"], model.head(hidden), inputs)
    if not spans:
        names = json.loads((directory / "config.json").read_text())["id2label"]
        assert list(names.values()) == labels


def test_vectors_of_texts(to, tokenizer, tmp_path):
    model = scrambled(SentenceEncoder(ENCODER, tokenizer))
    directory = written(model, tmp_path, to)
    inputs = make_inputs(model.encoder)
    found = TARGETS[to].outputs(directory, inputs)["vectors"]
    np.testing.assert_allclose(found, model(inputs)["vectors"], atol=1e-5, rtol=0)


def test_what_has_no_graph_of_token_ids_is_refused(tokenizer, tmp_path):
    with pytest.raises(ValueError, match="SpanExtractor with its head is not written"):
        written(SpanExtractor(ENCODER, tokenizer), tmp_path, "litert")
    assert [path.name for path in tmp_path.iterdir()] == ["preset"]


def test_what_is_missing_is_named(electra, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tf2onnx", None)
    with pytest.raises(ValueError, match="pip install tf2onnx"):
        written(electra, tmp_path, "onnx")
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(ValueError, match="KERAS_BACKEND=tensorflow"):
        convert(tmp_path / "preset", tmp_path / "theirs", "litert")
