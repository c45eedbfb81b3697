"""Hugging Face's ModernBERT, as tests/fixtures/record_modernbert.py has it."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_corrupt import models
from keras_corrupt.convert import hugging_face_modernbert
from keras_corrupt.convert.check import make_inputs, outputs
from keras_corrupt.convert.conversion import convert
from keras_corrupt.convert.options import Options
from keras_corrupt.downstream import SpanExtractor, TextClassifier, TokenTagger
from keras_corrupt.models import Electra, MaskedLM
from keras_corrupt.multitask import MultiTaskModel
from tests.conftest import MODERN, SIZES
from tests.convert.conftest import assert_close, assert_same_weights, written
from tests.convert.test_hugging_face_roberta import logits
from tests.downstream.conftest import scrambled

THEIRS = Path(__file__).parents[1] / "fixtures" / "modernbert"
TO = "hugging_face"
WIDE = SIZES["discriminator"] | MODERN | {"embedding_size": 16, "vocabulary_size": 60}


@pytest.fixture(scope="module")
def recorded():
    with np.load(THEIRS / "inputs.npz") as inputs:
        found = dict(inputs)
    with np.load(THEIRS / "outputs.npz") as made:
        return found, dict(made)


def config_of(folder):
    return json.loads((folder / "config.json").read_text())


def changed(folder, weights=dict, **config):
    """Copies the directory, with other weights and entries of `config.json`."""
    shutil.copytree(THEIRS, folder)
    entries = {**config_of(THEIRS), **config}
    (folder / "config.json").write_text(json.dumps(entries))
    arrays = weights(load_file(THEIRS / "model.safetensors"))
    save_file(arrays, folder / "model.safetensors")
    return folder


# === In ===


def test_it_computes_what_theirs_does(recorded):
    inputs, expected = recorded
    model = MaskedLM.from_preset(THEIRS)
    encoder = model.encoder
    assert (encoder.local_window, encoder.global_every) == (4, 3)
    assert (encoder.rotary_theta, encoder.local_rotary_theta) == (500, 20)
    assert not encoder.use_bias
    arrays = {name: inputs[name] for name in ("token_ids", "padding_mask")}
    assert_close(encoder(arrays), expected["hidden"], inputs)
    assert_close(logits(model, inputs), expected["mlm"], inputs)


def test_its_tokenizer_gives_the_same_ids(recorded):
    inputs, _ = recorded
    tokenizer = models.load_preset(THEIRS).tokenizer
    packed = tokenizer.pack(inputs["texts"].tolist(), max_length=32)
    for name in ("token_ids", "padding_mask"):
        np.testing.assert_array_equal(packed[name], inputs[name])
    assert tokenizer.padding_id == config_of(THEIRS)["pad_token_id"]
    assert tokenizer.decode(tokenizer.encode("the cat")) == "the cat"


def test_entries_of_the_released_files_are_read(recorded, tmp_path):
    inputs, expected = recorded
    config = config_of(THEIRS)
    for name in ("rope_parameters", "layer_types"):
        del config[name]
    config |= {"global_rope_theta": 500.0, "local_rope_theta": 20.0}
    folder = changed(tmp_path / "released")
    (folder / "config.json").write_text(
        json.dumps(config | {"global_attn_every_n_layers": 3})
    )
    assert_close(logits(models.load_preset(folder), inputs), expected["mlm"], inputs)


def test_biases_that_theirs_has_and_not_are_read(recorded, tmp_path):
    """Without any in the decoder; with some in norms, which the head's need."""
    inputs, expected = recorded

    def without_decoder(arrays):
        return {n: a for n, a in arrays.items() if n != "decoder.bias"}

    bias = load_file(THEIRS / "model.safetensors")["decoder.bias"]
    folder = changed(tmp_path / "none", without_decoder, decoder_bias=False)
    made = logits(models.load_preset(folder), inputs) + bias
    assert_close(made, expected["mlm"], inputs)

    def with_norms(value):
        def change(arrays):
            norms = [n for n in arrays if n.endswith("norm.weight")]
            names = [n.replace("weight", "bias") for n in norms]
            arrays |= {name: np.zeros(16, "float32") for name in names}
            return arrays | {"model.final_norm.bias": np.full(16, value, "float32")}

        return change

    folder = changed(tmp_path / "zeros", with_norms(0), norm_bias=True)
    model = models.load_preset(folder)
    assert not model.encoder.use_bias
    assert_close(logits(model, inputs), expected["mlm"], inputs)
    model = models.load_preset(
        changed(tmp_path / "some", with_norms(0.5), norm_bias=True)
    )
    assert model.encoder.use_bias
    hidden = model.encoder({n: inputs[n] for n in ("token_ids", "padding_mask")})
    assert_close(hidden, expected["hidden"] + 0.5, inputs)


def test_an_encoder_alone_is_read(tmp_path):
    def encoder_alone(arrays):
        own = [n for n in arrays if n.startswith("model.")]
        return {name.removeprefix("model."): arrays[name] for name in own}

    with pytest.warns(UserWarning, match="has an encoder alone"):
        alone = models.load_preset(changed(tmp_path / "encoder", encoder_alone))
    assert_same_weights(models.load_preset(THEIRS).encoder, alone.encoder)


def test_a_task_starts_from_it():
    whole = models.load_preset(THEIRS)
    tagger = TokenTagger.from_preset(THEIRS, labels=["O", "B-X"])
    assert_same_weights(whole.encoder, tagger.encoder)


def test_what_cannot_be_is_refused(tmp_path):
    def other_copy(arrays):
        table = arrays["model.embeddings.tok_embeddings.weight"]
        return arrays | {"decoder.weight": table + 1}

    def classifier(arrays):
        arrays |= {"classifier.weight": np.ones((2, 16), "float32")}
        del arrays["decoder.bias"]
        return arrays | {"classifier.bias": np.ones(2, "float32")}

    full, local = "full_attention", "sliding_attention"
    scaled = {full: {"rope_type": "linear", "factor": 2.0, "rope_theta": 500.0}}
    tagger = ["ModernBertForTokenClassification"]
    for i, (weights, config, reason) in enumerate(
        [
            (dict, {"hidden_activation": "relu"}, "hidden_activation is 'relu'"),
            (dict, {"classifier_activation": "relu"}, "classifier_activation is 'relu"),
            (dict, {"rope_parameters": scaled}, "rotary positions are scaled"),
            (dict, {"layer_types": [local, full] * 2}, "in the layers .1, 3."),
            (dict, {"layer_types": [full, full, local, full]}, "in the layers .0, 1"),
            (dict, {"local_attention": 5}, "local_window"),
            (dict, {"norm_eps": 0}, "layer_norm_epsilon.*got 0"),
            (dict, {"num_hidden_layers": 400, "layer_types": None}, "larger than"),
            (other_copy, {}, "decoder.weight is not"),
            (classifier, {"architectures": tagger}, "layers that no head here has"),
        ]
    ):
        with pytest.raises(ValueError, match=reason) as refusal:
            models.load_preset(changed(tmp_path / str(i), weights, **config))
        assert "\n" not in str(refusal.value)


# === Out ===


def test_it_goes_back_as_it_came(tmp_path):
    convert(THEIRS, tmp_path / "theirs", to=TO)
    assert_same_arrays(tmp_path / "theirs", THEIRS)
    config, before = config_of(tmp_path / "theirs"), config_of(THEIRS)
    assert before == before | {n: v for n, v in config.items() if n in before}
    new = {"global_attn_every_n_layers": 3, "global_rope_theta": 500.0}
    new |= {"local_rope_theta": 20.0}
    assert new == {n: v for n, v in config.items() if n not in before}
    tokenizer, old = (
        json.loads((folder / "tokenizer.json").read_text())
        for folder in (tmp_path / "theirs", THEIRS)
    )
    for part in ("added_tokens", "normalizer", "pre_tokenizer", "model"):
        assert tokenizer[part] == old[part]
    mask = next(t for t in tokenizer["added_tokens"] if t["content"] == "[MASK]")
    assert mask["lstrip"]
    names = json.loads((tmp_path / "theirs" / "tokenizer_config.json").read_text())
    assert names["model_input_names"] == ["input_ids", "attention_mask"]


def assert_same_arrays(folder, other):
    arrays, others = (load_file(f / "model.safetensors") for f in (folder, other))
    assert arrays.keys() == others.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, others[name], name)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"feed_forward": "swiglu", "approximate_gelu": True},
        {"use_bias": True, "local_window": None},
    ],
)
def test_a_masked_lm_comes_back(options, tokenizer, tmp_path):
    model = scrambled(MaskedLM(WIDE | options | {"num_layers": 2}, tokenizer=tokenizer))
    theirs = written(model, tmp_path, TO)
    assert config_of(theirs)["norm_bias"]  # The head's norm has them.
    back = MaskedLM.from_preset(theirs)
    for name in MODERN | options:
        assert getattr(back.encoder, name) == getattr(model.encoder, name) or (
            name == "global_every" and model.encoder.local_window is None
        )
    assert_same_weights(model.network, back.network)


def test_an_electras_encoder_comes_back(tokenizer, tmp_path):
    model = Electra(WIDE, SIZES["generator"], tokenizer=tokenizer)
    theirs = written(scrambled(model), tmp_path, TO)
    assert config_of(theirs)["architectures"] == ["ModernBertModel"]
    with pytest.warns(UserWarning, match="has an encoder alone"):
        back = models.load_preset(theirs)
    assert_same_weights(model.encoder, back.encoder)


def head_of_theirs(folder, hidden):
    """What ModernBERT's head makes of an encoder's output, in NumPy, float64."""
    arrays = load_file(folder / "model.safetensors")
    head = {n: a.astype("float64") for n, a in arrays.items()}
    x = hidden @ head["head.dense.weight"].T + head.get("head.dense.bias", 0)
    x = x - x.mean(-1, keepdims=True)
    epsilon = config_of(folder)["norm_eps"]
    x = x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon)
    x = x * head["head.norm.weight"] + head.get("head.norm.bias", 0)
    return x @ head["classifier.weight"].T + head["classifier.bias"]


@pytest.mark.parametrize("use_bias", [True, False])
@pytest.mark.parametrize(
    ("cls", "arguments", "task"),
    [
        (TextClassifier, {"labels": ["a", "b", "c"]}, "SequenceClassification"),
        (TokenTagger, {"labels": ["O", "B-X"]}, "TokenClassification"),
        (SpanExtractor, {"head_type": "bert"}, "QuestionAnswering"),
    ],
)
def test_fine_tuned_models_compute_the_same(
    cls, arguments, task, use_bias, tokenizer, tmp_path
):
    encoder = WIDE | {"use_bias": use_bias, "layer_norm_epsilon": 1e-5}
    model = scrambled(cls(encoder, tokenizer, **arguments))
    theirs = written(model, tmp_path, TO)
    assert config_of(theirs)["architectures"] == [f"ModernBertFor{task}"]
    inputs = make_inputs(model.encoder)
    made = outputs(model, inputs, Options())
    ours = made["spans" if cls is SpanExtractor else "logits"]
    hidden = made["hidden"][:, 0] if cls is TextClassifier else made["hidden"]
    expected = head_of_theirs(theirs, hidden.astype("float64"))
    np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-4)
    back = cls.from_preset(theirs)
    assert_same_weights(model.encoder, back.encoder)
    assert_same_weights(model.head, back.head)


def test_each_task_has_a_directory(tokenizer, tmp_path):
    tasks = {
        "words": {"class": "TokenTagger", "labels": ["O", "B-X"]},
        "animals": {"class": "TextClassifier", "labels": ["cat", "dog"]},
    }
    model = scrambled(MultiTaskModel(WIDE, tokenizer, tasks))
    theirs = written(model, tmp_path, TO)
    for name, cls in (("words", TokenTagger), ("animals", TextClassifier)):
        back = cls.from_preset(theirs / name)
        assert_same_weights(model.part(name).head, back.head)


@pytest.mark.parametrize(
    "options",
    [
        {"embedding_size": 12},
        {"positions": "learned"},
        {"feed_forward": "gelu"},
        {"num_segments": 2},
        {"attention": "left_to_right"},
    ],
)
def test_an_encoder_that_is_none_of_theirs_is_refused(options, tokenizer, tmp_path):
    model = MaskedLM(WIDE | options, tokenizer=tokenizer)
    ((name, value),) = options.items()
    with pytest.raises(ValueError, match=f"encoder with {name}={value!r} has no count"):
        written(model, tmp_path, TO)
    assert not (tmp_path / "theirs").exists()


def test_a_norm_that_multiplies_by_zero_has_no_way_back():
    gamma = np.array([1.0, 0.0], "float32")
    with pytest.raises(ValueError, match="multiplies a number by 0"):
        hugging_face_modernbert.giving_back(gamma, 0)
