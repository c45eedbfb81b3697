"""Hugging Face's ELECTRA and BERT, as tests/fixtures/record_hugging_face.py has it."""

import json
import os
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_corrupt import models
from keras_corrupt.convert.conversion import convert
from keras_corrupt.convert.files import find_tokenizer
from keras_corrupt.downstream import (
    SpanExtractor,
    TextClassifier,
    TokenTagger,
    kept_results,
)
from keras_corrupt.models import Electra, MaskedLM, Teams
from keras_corrupt.presets.named_variables import named_weights
from tests.conftest import SIZES
from tests.convert.conftest import assert_close, assert_same_weights, written

TO = "hugging_face"
ROOT = Path(__file__).parents[1] / "fixtures" / "hugging_face"
WEIGHTS = "model.safetensors"


@pytest.fixture(scope="module")
def recorded():
    with np.load(ROOT / "inputs.npz") as file:
        return dict(file)


def outputs_of(folder):
    with np.load(ROOT / folder / "outputs.npz") as file:
        return dict(file)


def positions(inputs):
    length = np.arange(inputs["token_ids"].shape[1], dtype="int32")
    return np.broadcast_to(length, inputs["token_ids"].shape)


def assert_same(model, other):
    for name, network in model.networks.items():
        assert_same_weights(network, other.networks[name])


def test_electra_computes_what_theirs_does(recorded):
    model = Electra.from_preset(ROOT / "electra")
    assert model.tied_embeddings == "token_and_position"
    rtd = model.discriminator(recorded)
    expected = outputs_of("electra")["rtd"]
    assert_close(rtd, expected, recorded)
    mlm = model.generator(recorded, positions(recorded))
    expected = outputs_of("electra/generator")["mlm"]
    assert_close(mlm, expected, recorded)


def test_bert_computes_what_theirs_does(recorded):
    model = models.load_preset(ROOT / "bert")
    assert type(model) is MaskedLM
    assert model.encoder.approximate_gelu
    mlm = model.network(recorded, positions(recorded))
    expected = outputs_of("bert")["mlm"]
    assert_close(mlm, expected, recorded)


def test_an_encoder_alone_computes_what_theirs_does(recorded):
    with pytest.warns(UserWarning, match="head on it is new"):
        model = models.load_preset(ROOT / "encoder")
    expected = outputs_of("encoder")["hidden"]
    assert_close(model.encoder(recorded), expected, recorded)


def test_a_fine_tuned_model_computes_what_theirs_does(recorded):
    tagger = TokenTagger.from_preset(ROOT / "tagger")
    assert tagger.labels == ["NOUN", "VERB", "X"]
    logits = tagger({**recorded, "word_starts": recorded["padding_mask"]})["logits"]
    expected = outputs_of("tagger")["logits"]
    assert_close(logits, expected, recorded)
    with pytest.raises(ValueError, match="hidden layer.*TextClassifier"):
        TextClassifier.from_preset(ROOT / "classifier")


def test_both_networks_come_back_bit_for_bit(electra, tmp_path):
    theirs = written(electra, tmp_path, TO)
    back = models.load_preset(theirs)
    assert_same(electra, back)
    assert back.tokenizer.fingerprint == electra.tokenizer.fingerprint
    assert back.discriminator.encoder.architecture == electra.encoder.architecture
    assert back.generator.encoder.embeddings.token is back.encoder.embeddings.token


def test_the_directory_has_the_files_that_they_read(electra, tmp_path):
    theirs = written(electra, tmp_path, TO)
    files = {path.name for path in theirs.iterdir()}
    recorded = {path.name for path in (ROOT / "electra").iterdir()} - {"outputs.npz"}
    assert files == recorded | {"vocab.txt", "special_tokens_map.json", "README.md"}
    for network in ("", "generator"):
        config = json.loads((theirs / network / "config.json").read_text())
        other = json.loads((ROOT / "electra" / network / "config.json").read_text())
        assert config.keys() <= other.keys()
        assert config["architectures"] == other["architectures"]
        assert (
            load_file(theirs / network / "model.safetensors").keys()
            == load_file(ROOT / "electra" / network / "model.safetensors").keys()
        )
    card = (theirs / "README.md").read_text()
    assert "transformers.ElectraForPreTraining.from_pretrained(directory)" in card
    for network, is_text in (("", True), ("generator", False)):
        config = json.loads((theirs / network / "tokenizer_config.json").read_text())
        assert config["split_special_tokens"] is is_text  # `fill-mask` needs [MASK]


def test_the_card_keeps_what_the_source_says(electra, tmp_path):
    electra.save_to_preset(tmp_path / "ours")
    before = "---\ntags: [old]\n---\n# Ours\n\nAUC 0.9\n"
    (tmp_path / "ours" / "README.md").write_text(before)
    convert(tmp_path / "ours", tmp_path / "theirs", TO)
    card = (tmp_path / "theirs" / "README.md").read_text()
    assert card.startswith("---\nlibrary_name: transformers\n")
    assert "\n# theirs\n" in card
    assert card.endswith("# Ours\n\nAUC 0.9\n")
    assert "old" not in card


def test_masked_lm_and_encoders_of_others_come_back(tokenizer, tmp_path):
    sizes = SIZES["discriminator"] | {"vocabulary_size": 60}
    for i, change in enumerate(({}, {"embedding_size": 16, "approximate_gelu": True})):
        model = MaskedLM({**sizes, **change}, tokenizer=tokenizer)
        assert_same(model, models.load_preset(written(model, tmp_path / str(i), TO)))
    teams = Teams(sizes, generator_layers=2, tokenizer=tokenizer)
    theirs = written(teams, tmp_path / "teams", TO)
    with pytest.warns(UserWarning, match="head on it is new"):
        back = Electra.from_preset(theirs)
    for name, variable in named_weights(teams.encoder).items():
        np.testing.assert_array_equal(variable, named_weights(back.encoder)[name])


def test_fine_tuned_models_come_back(electra, tmp_path, tokenizer):
    electra.save_to_preset(tmp_path / "start")
    texts, words = ["the cat sat", "a dog ran on"], [["the", "cat"], ["dog"]]
    for cls, arguments, examples in (
        (TextClassifier, {"labels": ["bad", "fine", "good"]}, texts),
        (TokenTagger, {"labels": ["NOUN", "VERB"]}, words),
        (SpanExtractor, {"head_type": "bert"}, None),
    ):
        model = cls.from_preset(tmp_path / "start", **arguments)
        for variable in model.head.trainable_variables:
            variable.assign(np.random.default_rng(0).normal(size=variable.shape))
        back = cls.from_preset(written(model, tmp_path / cls.__name__, TO))
        assert_same(model, back)
        if examples:
            assert back.predictions(examples) == model.predictions(examples)


def test_a_classifiers_two_layers_compute_what_its_one_does():
    from scipy.special import erf

    from keras_corrupt.convert.hugging_face_tasks import two_layers

    rng = np.random.default_rng(0)
    kernel, bias, x = (rng.normal(size=s) for s in ((16, 3), (3,), (5, 16)))
    arrays = two_layers(kernel, bias)
    inner = x @ arrays["classifier.dense.weight"].T + arrays["classifier.dense.bias"]
    inner = inner * 0.5 * (1 + erf(inner / np.sqrt(2)))
    outer = inner @ arrays["classifier.out_proj.weight"].T
    np.testing.assert_allclose(outer, x @ kernel + bias, atol=1e-5)


def test_what_they_have_no_place_for_is_refused(electra, tmp_path):
    electra.save_to_preset(tmp_path / "preset")
    SpanExtractor.from_preset(tmp_path / "preset").save_to_preset(tmp_path / "spans")
    with pytest.raises(ValueError, match="XLNet"):
        convert(tmp_path / "spans", tmp_path / "theirs", to="hugging_face")
    assert {path.name for path in tmp_path.iterdir()} == {"preset", "spans"}
    with pytest.raises(ValueError, match="exists"):
        convert(tmp_path / "preset", tmp_path / "spans")
    labels = list(map(str, range(9)))
    many = TextClassifier.from_preset(tmp_path / "preset", labels=labels)
    with pytest.raises(ValueError, match="9 labels.*hidden_size=16"):
        written(many, tmp_path / "many", TO)


def changed(folder, tmp_path, weights=None, **config):
    """Copies a recorded directory with another `config.json`, or other weights."""
    tmp_path.mkdir(exist_ok=True)
    entries = json.loads((ROOT / folder / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**entries, **config}))
    arrays = load_file(ROOT / folder / "model.safetensors")
    save_file((weights or dict)(arrays), tmp_path / "model.safetensors")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((ROOT / folder / name).read_bytes())
    return tmp_path


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"model_type": "distilbert"}, "it has no segments"),
        ({"model_type": "deberta-v2"}, "positions in every layer"),
        ({"hidden_act": "relu"}, "'relu', not gelu"),
        ({"position_embedding_type": "relative_key"}, "'absolute'"),
        ({"hidden_size": 32}, r"larger than|is \[.*not \[43, 12\]"),
        ({"num_hidden_layers": 10**9}, "larger than the weights"),
        ({"num_hidden_layers": 1}, "layer.1.*is not known"),
        ({"vocab_size": "43"}, "not a whole number"),
        ({"max_position_embeddings": 24}, r"position_embeddings.weight is \[16, 12\]"),
    ],
)
def test_what_an_encoder_here_cannot_hold_is_refused(config, reason, tmp_path):
    with pytest.raises(ValueError, match=reason) as refusal:
        models.load_preset(changed("electra", tmp_path / "theirs", **config))
    assert "\n" not in str(refusal.value)


def test_wrong_weights_are_listed(tmp_path):
    name = "electra.embeddings.LayerNorm.weight"

    def without(arrays):
        return {n: a for n, a in arrays.items() if n != name}

    def not_finite(arrays):
        return {**arrays, name: arrays[name] * np.nan}

    for change, reason in (
        (without, f"{name}, .12., is missing"),
        (not_finite, f"{name} has NaN"),
        (lambda arrays: {**arrays, "more": arrays[name]}, "more is not known"),
    ):
        with pytest.raises(ValueError, match=reason):
            folder = tmp_path / reason.replace(" ", "_")
            models.load_preset(changed("electra", folder, change))


def test_longer_tables_are_cut_and_old_names_known(tmp_path, recorded):
    def old(arrays):
        # As the first releases of BERT are.
        table = "bert.embeddings.word_embeddings.weight"
        copies = {
            "bert.embeddings.position_ids": np.arange(16)[None],
            "cls.predictions.decoder.weight": arrays[table],
        }
        renamed = {
            n.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
                "LayerNorm.bias", "LayerNorm.beta"
            ): a
            for n, a in arrays.items()
        }
        return renamed | copies

    theirs = changed("bert", tmp_path / "a", old, max_position_embeddings=14)
    model = models.load_preset(theirs)
    assert model.max_length == 14
    mlm = model.network(recorded, positions(recorded))
    assert_close(mlm, outputs_of("bert")["mlm"], recorded)
    with pytest.raises(ValueError, match="decoder.weight is not bert.embeddings"):
        untied = {"cls.predictions.decoder.weight": np.ones((43, 16), "float32")}
        models.load_preset(changed("bert", tmp_path / "b", lambda a: {**a, **untied}))


def test_a_pickle_needs_pytorch(tmp_path):
    theirs = changed("electra", tmp_path / "theirs")
    (theirs / "model.safetensors").rename(theirs / "pytorch_model.bin")
    with pytest.raises(ValueError, match="PyTorch|more than arrays"):
        models.load_preset(theirs)
    (theirs / "pytorch_model.bin").rename(theirs / "tf_model.h5")
    with pytest.raises(ValueError, match="no model.safetensors.*tf_model.h5.*from_tf"):
        models.load_preset(theirs)


def changed_bert(folder, change, **config):
    """Copies their BERT with other weights and other entries of its `config.json`."""
    shutil.copytree(ROOT / "bert", folder)
    save_file(change(load_file(ROOT / "bert/model.safetensors")), folder / WEIGHTS)
    known = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(known | config))
    return folder


def test_a_tagger_may_have_a_pooler(tmp_path):
    """Files of older versions of their library have it; no tag depends on it."""

    def tagger(arrays):
        encoder = {n: a for n, a in arrays.items() if n.startswith("bert.")}
        width = len(encoder["bert.embeddings.LayerNorm.weight"])
        head = np.arange(2 * width, dtype="float32").reshape(2, width)
        head = {"classifier.weight": head, "classifier.bias": np.ones(2, "float32")}
        return encoder | head

    def with_pooler(arrays):
        width = len(arrays["bert.embeddings.LayerNorm.weight"])
        kernel = np.ones((width, width), "float32")
        pooler = {"weight": kernel, "bias": kernel[0]}
        pooler = {f"bert.pooler.dense.{name}": array for name, array in pooler.items()}
        return tagger(arrays) | pooler

    config = {
        "architectures": ["BertForTokenClassification"],
        "id2label": {"0": "O", "1": "B-PER"},
    }
    plain, pooled = (
        TokenTagger.from_preset(
            changed_bert(tmp_path / change.__name__, change, **config)
        )
        for change in (tagger, with_pooler)
    )
    assert_same(plain, pooled)
    assert pooled.labels == ["O", "B-PER"]


def test_what_files_lack_is_the_same_in_each_process(tmp_path):
    """So that results which are kept are those of this preset."""

    def encoder_alone(arrays):
        return {n: a for n, a in arrays.items() if n.startswith("bert.")}

    folder = changed_bert(tmp_path / "theirs", encoder_alone)
    found = []
    for seed in (1, 2):
        os.utime(folder / WEIGHTS, (2e9 + seed,) * 2)  # changed: converted again
        random.seed(seed)
        with pytest.warns(UserWarning, match="has an encoder alone; the head"):
            found.append(kept_results.fingerprint(str(folder)))
        after = random.random()
        random.seed(seed)
        assert after == random.random()
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "word, config, lowercase, strip_accents",
    [
        ("paris", None, True, True),
        ("Paris", None, False, False),
        ("[unused1]", None, True, True),
        ("Paris", {"do_lower_case": True}, True, True),
        ("paris", {"do_lower_case": False}, False, False),
        ("Paris", {"strip_accents": True}, False, True),
    ],
)
def test_the_case_of_a_bare_vocabulary(
    word, config, lowercase, strip_accents, tmp_path
):
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "1", "##s", word]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    if config:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    flags = find_tokenizer(tmp_path).flags
    assert flags["lowercase"] == lowercase
    assert flags["strip_accents"] == strip_accents
