"""COCO-LM as a model: what it measures and shows, saves, learns and refuses."""

import re

import keras
import numpy as np
import pytest
from keras import ops

from keras_corrupt.models import load_preset
from keras_corrupt.models.baselines import Unigram
from keras_corrupt.training import AdamW
from tests.conftest import COMPILED
from tests.models.conftest import arrays
from tests.models.make_coco_lm import log_softmax, make, mean, scrambled


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(0)
    return scrambled(make(mask_rate=0.5))


def test_metrics_equal_numpy(model, inputs):
    bias = model.discriminator.head.classifier.bias  # so that some are found original
    bias.assign(bias - ops.mean(model(inputs)["rtd"].logits))
    bias = model.discriminator.vocabulary_head.bias  # and some are not copied
    bias.assign(np.random.default_rng(0).normal(scale=30, size=50))
    model.reset_metrics()
    outputs = model(inputs)
    loss = model.compute_loss(inputs, y_pred=outputs)
    assert np.isfinite(float(loss))
    o = arrays(outputs)
    metrics = {m.name: float(m.result()) for m in model.metrics}
    assert set(model.objectives.metric_names) < set(metrics)

    text = o["corrupted"]
    original = (inputs["token_ids"] == text.token_ids) * inputs["padding_mask"]
    copied = mean(o["rtd"].logits <= 0, original)
    assert 0 < copied < 1
    assert metrics["original_copy_accuracy"] == pytest.approx(copied, rel=1e-5)
    copying = 1 / (1 + np.exp(o["rtd"].logits))
    copying = np.take_along_axis(copying, text.masking.positions, 1)[..., None]
    probabilities = (1 - copying) * np.exp(log_softmax(o["lm"].logits))
    read = text.sampled_ids[..., None]
    np.put_along_axis(
        probabilities, read, np.take_along_axis(probabilities, read, -1) + copying, -1
    )
    likeliest = probabilities.argmax(-1)
    np.testing.assert_array_equal(o["lm"].corrected_ids, likeliest)
    assert 0.1 < (likeliest == text.sampled_ids).mean() < 0.9
    same = text.sampled_ids == text.target_ids
    for name, which in (("original", same), ("replaced", ~same)):
        weights = text.masking.weights * which
        right = mean(likeliest == text.target_ids, weights) if weights.any() else 0.0
        assert metrics[f"{name}_lm_accuracy"] == pytest.approx(right, rel=1e-5)

    cosines = o["views"].cosines.astype("float64")
    positive = np.array([cosines[i, 0, i, 1] for i in range(6)])
    assert metrics["positive_cosine"] == pytest.approx(positive.mean(), rel=1e-5)
    different = np.array(
        [cosines[i, :, j] for i in range(6) for j in range(6) if i != j]
    )
    assert metrics["random_cosine"] == pytest.approx(different.mean(), abs=1e-5)
    # Of unit vectors, |x - y|^2 = 2 - 2 cos.
    assert metrics["alignment"] == pytest.approx((2 - 2 * positive).mean(), rel=1e-5)
    uniformity = np.log(np.exp(-2 * (2 - 2 * different)).mean())
    assert metrics["uniformity"] == pytest.approx(uniformity, rel=1e-4)

    baselines = model.objectives.baselines(metrics, Unigram(7.0, 0.05))
    assert baselines["positive_cosine"] == (metrics["random_cosine"], "other texts")
    alike = metrics | {"positive_cosine": 0.4, "random_cosine": 0.5}
    assert any(
        "--accumulate" in w
        for w in model.objectives.warnings(alike, Unigram(9.0, 0.05))
    )


def test_examples_show_corrections(tokenizer):
    size = {"vocabulary_size": tokenizer.vocabulary_size}
    model = make(encoder=size, tokenizer=tokenizer, mask_rate=0.5)
    inputs = tokenizer.pack(["the dog ran on the mat.", "a quick cat sat"], 24)
    texts = " ".join(model.describe_examples(inputs))
    assert " > " in texts and "]" in texts
    # Each replacement, which may itself be a token in brackets, has its correction.
    corrections = re.findall(r" > \S+ \d\.\d\d(.)", texts)
    assert set(corrections) == {":"} and len(corrections) == texts.count(" > ")
    plain = make(encoder=size, tokenizer=tokenizer, token_task="rtd")
    assert "colon" in model.objectives.examples_legend
    assert "colon" not in plain.objectives.examples_legend
    assert len(plain.describe_examples(inputs)) == 2


@pytest.mark.parametrize(
    "options",
    [
        {"sequence_transform": True},
        {"token_task": "rtd", "sequence_task": "none", "tied_embeddings": "none"},
    ],
    ids=str,
)
def test_preset_and_keras_file_round_trip(tmp_path, options, inputs):
    model = scrambled(make(**options))
    model.save_to_preset(tmp_path / "preset")
    model.save(tmp_path / "model.keras")
    for loaded in (
        load_preset(tmp_path / "preset"),
        keras.saving.load_model(tmp_path / "model.keras"),
    ):
        assert loaded.get_config() == model.get_config()
        assert loaded.count_params() == model.count_params()
        assert loaded.loss_weights == model.loss_weights
        positions = np.tile(np.array([[1, 3]], "int32"), (6, 1))
        found = {"discriminator": (inputs,), "generator": (inputs, positions)}
        for name, arguments in found.items():
            ours, theirs = (m.networks[name](*arguments) for m in (model, loaded))
            np.testing.assert_array_equal(np.array(ours), np.array(theirs))
        if model.sequence_transform:
            ours, theirs = (
                m.discriminator.sequence_head(np.ones((1, 16), "float32"))
                for m in (model, loaded)
            )
            np.testing.assert_array_equal(np.array(ours), np.array(theirs))
        if model.corrects:
            hidden = model.encoder(inputs)
            ours, theirs = (
                m.discriminator.vocabulary_head(hidden, positions)
                for m in (model, loaded)
            )
            np.testing.assert_array_equal(np.array(ours), np.array(theirs))


@pytest.mark.usefixtures("graphs")
def test_fit_learns_a_pattern():
    """All tokens of a sequence are the same one."""
    ids = np.random.default_rng(0).integers(5, 50, (512, 1)).repeat(12, axis=1)
    ids = ids.astype("int32")
    model = make(
        encoder={"initializer_range": 0.1}, replacements="random", rtd_weight=5.0
    )
    model.compile(AdamW(8e-3, global_clipnorm=1.0), jit_compile=COMPILED)
    model.fit(ids, batch_size=64, epochs=16, verbose=0)
    last = model.evaluate(ids, batch_size=64, verbose=0, return_dict=True)
    assert last["rtd_auc"] > 0.95
    assert last["mlm_accuracy"] > 0.9
    assert last["replaced_lm_accuracy"] > 0.7  # chance: 1/45
    assert last["positive_cosine"] > last["random_cosine"] + 0.5


@pytest.mark.parametrize(
    "options, message",
    [
        ({"token_task": "mlm"}, "`token_task`.*clm.*rtd.*all_token_lm.*got 'mlm'"),
        ({"sequence_task": "nsp"}, "`sequence_task`.*scl.*none.*got 'nsp'"),
        ({"replacements": "all"}, "`replacements`.*sampled.*random.*got 'all'"),
        ({"tied_embeddings": "some"}, "`tied_embeddings`.*token.*all.*got 'some'"),
        ({"sequence_transform": True, "sequence_task": "none"}, "leave one of them"),
        ({"crop_fraction": 0.0}, "`crop_fraction`.*more than 0.*at most 1.*got 0.0"),
        ({"crop_fraction": 90}, "`crop_fraction`.*got 90"),
        ({"crop_fraction": "most"}, "`crop_fraction`.*got 'most'"),
        ({"rtd_weight": -1}, "`rtd_weight`.*at least 0"),
        ({"scl_weight": "none"}, "`scl_weight`.*at least 0"),
        ({"encoder": {"embedding_size": 8}}, "`discriminator`.*embedding_size=8.*rtd"),
        ({"mask_id": 50}, "`mask_id` 50.*vocabulary_size=50"),
        ({"replacements": "random", "exclude_original": True}, "leave.*_original=True"),
        ({"replacements": "random", "temperature": 2.0}, "leave out `temperature=2.0`"),
    ],
    ids=str,
)
def test_constructor_errors(options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)


def test_detection_alone_needs_no_equal_sizes():
    assert make(encoder={"embedding_size": 8}, token_task="rtd").corrects is False
