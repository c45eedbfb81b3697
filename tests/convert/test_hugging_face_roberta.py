"""Hugging Face's RoBERTa, as tests/fixtures/record_hugging_face.py has it."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_corrupt import models
from keras_corrupt.convert import hugging_face_roberta
from keras_corrupt.convert.conversion import convert
from keras_corrupt.downstream import TokenTagger
from keras_corrupt.models import MaskedLM
from tests.convert.conftest import assert_close, assert_same_weights

THEIRS = Path(__file__).parents[1] / "fixtures" / "hugging_face" / "roberta"


@pytest.fixture(scope="module")
def recorded():
    with np.load(THEIRS / "inputs.npz") as inputs:
        found = dict(inputs)
    with np.load(THEIRS / "outputs.npz") as outputs:
        return found, outputs["mlm"]


def logits(model, inputs):
    inputs = {name: array for name, array in inputs.items() if name != "texts"}
    length = np.arange(inputs["token_ids"].shape[1], dtype="int32")
    positions = np.broadcast_to(length, inputs["token_ids"].shape)
    return model.network(inputs, positions)


def changed(folder, weights=dict, **config):
    """Copies the directory, with other weights and entries of `config.json`."""
    shutil.copytree(THEIRS, folder)
    entries = json.loads((THEIRS / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**entries, **config}))
    arrays = weights(load_file(THEIRS / "model.safetensors"))
    save_file(arrays, folder / "model.safetensors")
    return folder


def test_it_computes_what_theirs_does(recorded):
    inputs, expected = recorded
    model = models.load_preset(THEIRS)
    assert type(model) is MaskedLM
    assert model.encoder.max_length == 32  # two rows of theirs are of no text
    assert model.encoder.layer_norm_epsilon == 1e-2
    assert_close(logits(model, inputs), expected, inputs)
    # They know no segments.
    second = {**inputs, "segment_ids": inputs["padding_mask"]}
    assert_close(logits(model, second), expected, inputs)


def test_its_tokenizer_gives_the_same_ids(recorded):
    inputs, _ = recorded
    tokenizer = models.load_preset(THEIRS).tokenizer
    arrays = (inputs[name] for name in ("texts", "token_ids", "padding_mask"))
    for text, ids, mask in zip(*arrays, strict=True):
        first, *words, last = ids[mask > 0].tolist()
        assert tokenizer.encode(str(text)) == words
        assert (first, last) == (tokenizer.classify_id, tokenizer.separate_id)


def test_it_goes_to_their_bert_and_comes_back(recorded, tmp_path):
    """BERT's classes have an epsilon, too; positions begin with the first one."""
    inputs, expected = recorded
    convert(THEIRS, tmp_path / "bert", to="hugging_face")
    config = json.loads((tmp_path / "bert" / "config.json").read_text())
    assert (config["model_type"], config["layer_norm_eps"]) == ("bert", 1e-2)
    back = models.load_preset(tmp_path / "bert")
    assert_same_weights(models.load_preset(THEIRS).network, back.network)
    assert_close(logits(back, inputs), expected, inputs)
    for library in ("keras_hub", "model_garden"):
        with pytest.raises(ValueError, match="layer_norm_epsilon=0.01 cannot be wr"):
            convert(THEIRS, tmp_path / library, to=library, approximate_gelu=True)


@pytest.mark.parametrize("kind", hugging_face_roberta.KINDS)
def test_kinds_and_parts(kind, recorded, tmp_path):
    inputs, expected = recorded

    def with_copies(arrays):
        table = arrays["roberta.embeddings.word_embeddings.weight"]
        copies = {"lm_head.decoder.weight": table.copy()}
        copies["lm_head.decoder.bias"] = arrays["lm_head.bias"].copy()
        width = table.shape[1]
        copies["roberta.pooler.dense.weight"] = np.zeros((width, width), "float32")
        copies["roberta.pooler.dense.bias"] = np.zeros(width, "float32")
        return arrays | copies

    folder = changed(tmp_path / kind, with_copies, model_type=kind)
    assert_close(logits(models.load_preset(folder), inputs), expected, inputs)

    def encoder_alone(arrays):
        return {
            name.removeprefix("roberta."): array
            for name, array in arrays.items()
            if name.startswith("roberta.")
        }

    folder = changed(tmp_path / "encoder", encoder_alone, model_type=kind)
    with pytest.warns(UserWarning, match="has an encoder alone"):
        alone = models.load_preset(folder)
    whole = models.load_preset(THEIRS)
    assert_same_weights(whole.encoder, alone.encoder)


def test_a_task_starts_from_it():
    whole = models.load_preset(THEIRS)
    tagger = TokenTagger.from_preset(THEIRS, labels=["O", "B-X"])
    assert_same_weights(whole.encoder, tagger.encoder)
    assert len(tagger.predictions([["The", "cat", "sat"]])[0]) == 3


def test_what_cannot_be_is_refused(tmp_path):
    def other_copy(arrays):
        return arrays | {"lm_head.decoder.bias": arrays["lm_head.bias"] + 1}

    def classifier(arrays):
        found = {n: a for n, a in arrays.items() if n.startswith("roberta.")}
        for layer, size in (("dense", 16), ("out_proj", 2)):
            found[f"classifier.{layer}.weight"] = np.ones((size, 16), "float32")
            found[f"classifier.{layer}.bias"] = np.ones(size, "float32")
        return found

    for i, (weights, config, reason) in enumerate(
        [
            (dict, {"pad_token_id": 33}, "pad_token_id is 33"),
            (dict, {"pad_token_id": None}, "pad_token_id is None"),
            (dict, {"layer_norm_eps": 0}, "layer_norm_epsilon.*got 0"),
            (other_copy, {}, "decoder.bias is not lm_head.bias"),
            (classifier, {}, "(?i)head|layer"),
        ]
    ):
        with pytest.raises(ValueError, match=reason) as refusal:
            models.load_preset(changed(tmp_path / str(i), weights, **config))
        assert "\n" not in str(refusal.value)
