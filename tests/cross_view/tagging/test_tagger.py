import json

import keras
import numpy as np
import pytest
from scipy.special import log_softmax, rel_entr, softmax

from keras_corrupt.cross_view import CrossViewTagger
from keras_corrupt.cross_view.presets import word_size
from keras_corrupt.cross_view.tagging.tagger import views_of
from keras_corrupt.cross_view.views import VIEWS
from tests.conftest import gradients_of
from tests.cross_view.conftest import (
    LABELS,
    SEES,
    make_tagger,
    make_token_tagger,
    one_batch,
    sentences_of,
)


def batch_of(tagger, count=4, labelled=True):
    sentences, tags = sentences_of(count)
    return one_batch(tagger, sentences, tags if labelled else None)


@pytest.mark.parametrize("view", VIEWS)
def test_a_module_sees_what_it_may_and_all_of_that(tagger, view):
    inputs, _ = batch_of(tagger)
    lengths = inputs["padding_mask"].sum(axis=1)
    row = int(np.argsort(lengths)[-2])  # there is padding behind it
    length = lengths[row]
    assert 3 < length < inputs["word_ids"].shape[1]
    module = tagger.auxiliary[VIEWS.index(view)]

    def outputs(inputs):
        # What PredictionModule makes of a state says all that it knows of the state.
        return np.array(module.hidden(views_of(tagger.encoder(inputs))[view])[row])

    before = outputs(inputs)
    for other in range(length):
        changed = {name: array.copy() for name, array in inputs.items()}
        changed["word_ids"][row, other] = 1
        changed["character_ids"][row, other] = 0
        differs = np.abs(outputs(changed) - before)[:length].max(axis=1)
        for word in range(length):
            if SEES[view](other, word):
                assert differs[word] > 0, (other, word)
            else:
                assert differs[word] == 0, (other, word)


def test_padding_is_seen_by_no_module(tagger):
    inputs, _ = batch_of(tagger)
    changed = {name: array.copy() for name, array in inputs.items()}
    padding = inputs["padding_mask"] == 0
    changed["word_ids"][padding] = 5
    changed["character_ids"][padding] = 7
    before, after = (views_of(tagger.encoder(x)) for x in (inputs, changed))
    for view in VIEWS:
        a, b = (np.array(states[view])[~padding] for states in (before, after))
        np.testing.assert_array_equal(a, b)


def test_targets_are_the_primary_modules_without_dropout(tagger):
    inputs, _ = batch_of(tagger, labelled=False)
    outputs = tagger(inputs, training=True)
    plain = np.array(tagger(inputs)["logits"])
    np.testing.assert_allclose(outputs["targets"], softmax(plain, -1), atol=1e-6)
    assert not np.allclose(outputs["logits"], plain, atol=1e-3)


@pytest.mark.parametrize("labelled", [True, False])
def test_each_kind_of_batch_trains_its_own_modules(tagger, labelled):
    inputs, tags = batch_of(tagger, labelled=labelled)

    def loss():
        outputs = tagger(inputs, training=True)
        return tagger.compute_loss(inputs, tags, outputs)

    found = gradients_of(loss, tagger)

    def trained(network):
        return any(found[id(v)].any() for v in network.trainable_variables)

    assert trained(tagger.primary) == labelled
    for module in tagger.auxiliary:
        assert trained(module) != labelled
    assert trained(tagger.encoder.embeddings) and trained(tagger.encoder.lstms[0])
    value = float(loss())
    metrics = {m.name: float(m.result()) for m in tagger.metrics}
    name = "supervised_loss" if labelled else "cross_view_loss"
    assert value > 0 and metrics[name] > 0
    assert sum(metrics.values()) == pytest.approx(metrics[name])


def test_a_label_that_the_model_does_not_have_adds_nothing(tagger):
    inputs, tags = batch_of(tagger)
    words = inputs["padding_mask"].sum()
    logits = np.zeros((*tags.shape, len(tagger.labels)), "float32")
    tags[0, 0] = -1
    before, count = tagger.supervised_loss(inputs, tags, {"logits": logits})
    assert float(count) == words - 1
    logits[0, 0, 0] = 9
    after, _ = tagger.supervised_loss(inputs, tags, {"logits": logits})
    assert float(after) == float(before) > 0


def test_word_dropout_removes_words_for_the_student_alone():
    tagger = make_tagger(
        labelled_dropout=0.0,
        unlabelled_dropout=0.0,
        views=["word_dropout"],
        word_dropout=0.4,
    )
    inputs, _ = batch_of(tagger, count=40, labelled=False)
    changed = tagger.without_some_words(inputs)
    real = inputs["padding_mask"] > 0
    removed = np.array(changed["word_ids"]) == len(tagger.vocabulary.words) + 2
    assert 0.3 < removed[real].mean() < 0.5 and not removed[~real].any()
    kept = np.where(removed, inputs["word_ids"], changed["word_ids"])
    np.testing.assert_array_equal(kept, inputs["word_ids"])
    letters = np.where(removed[..., None], 0, inputs["character_ids"])
    np.testing.assert_array_equal(changed["character_ids"], letters)
    outputs = tagger(inputs, training=True)
    plain = np.array(tagger(inputs)["logits"])
    np.testing.assert_allclose(outputs["logits"], plain, atol=1e-6)
    assert not np.allclose(outputs["auxiliary"][0], plain, atol=1e-3)


def test_students_differ_from_step_to_step():
    tagger = make_tagger(views=["word_dropout", "vat"], word_dropout=0.5)
    inputs, targets = batch_of(tagger, labelled=False)
    tagger.compile(keras.optimizers.SGD(0.0))
    losses = [tagger.train_on_batch(inputs, targets)[0] for _ in range(3)]
    assert len(set(map(float, losses))) == 3


def test_adversarial_noise_changes_predictions_more_than_others():
    tagger = make_tagger(views=["vat"], vat_norm=1e-2)
    inputs, _ = batch_of(tagger, labelled=False)
    words = inputs["padding_mask"]
    logits = np.array(tagger(inputs)["logits"])
    targets = softmax(logits, axis=-1)

    def divergence(noise):
        changed = tagger.predict_from(tagger.encode(inputs, noise=noise))
        changed = log_softmax(np.array(changed, "float64"), axis=-1)
        each = (targets * (log_softmax(logits.astype("float64"), -1) - changed)).sum(-1)
        return (each * words).sum(axis=1)

    noise = np.array(tagger.adversarial_noise(inputs, targets))
    np.testing.assert_allclose(np.sqrt((noise**2).sum((1, 2))), 1e-2, rtol=1e-4)
    assert not noise[words == 0].any()
    rng = np.random.default_rng(0)
    for _ in range(5):
        other = rng.normal(size=noise.shape) * words[..., None]
        other *= 1e-2 / np.sqrt((other**2).sum((1, 2), keepdims=True))
        assert (divergence(noise) > divergence(other.astype("float32"))).all()


@pytest.mark.parametrize("make", [make_tagger, make_token_tagger])
def test_noise_is_as_great_as_embeddings_differ(make):
    model = make(views=["vat"])
    inputs, _ = one_batch(model, sentences_of(4)[0])
    shape = (*inputs["padding_mask"].shape, model.embedding_width)
    noise = np.random.default_rng(0).normal(size=shape).astype("float32")

    def change():
        with_noise = model.predict_from(model.encode(inputs, noise=noise))
        return np.abs(np.array(with_noise) - model(inputs)["logits"]).max()

    assert change() > 1e-3
    for variable in model.networks["encoder"].embeddings.trainable_variables:
        variable.assign(np.zeros(variable.shape))
    assert change() < 1e-6


def test_hard_targets_and_confidence():
    arguments = {"views": ["full"], "label_smoothing": 0.0}
    plain, hard = make_tagger(**arguments), make_tagger(hard_targets=True, **arguments)
    sure = make_tagger(confidence=0.6, **arguments)
    inputs, tags = batch_of(plain, labelled=False)
    words = inputs["padding_mask"] > 0
    rng = np.random.default_rng(0)
    primary, auxiliary = rng.normal(0, 2, (2, *words.shape, 3)).astype("float32")
    targets = softmax(primary, axis=-1)
    outputs = {"logits": primary, "targets": targets, "auxiliary": [auxiliary]}
    loss = {
        name: float(model.compute_loss(inputs, tags, outputs))
        for name, model in {"plain": plain, "hard": hard, "sure": sure}.items()
    }
    divergences = rel_entr(targets, softmax(auxiliary, axis=-1)).sum(-1)
    assert loss["plain"] == pytest.approx(divergences[words].mean(), rel=1e-4)
    likeliest = np.eye(3)[targets.argmax(-1)]
    each = -(likeliest * log_softmax(auxiliary, axis=-1)).sum(-1)
    assert loss["hard"] == pytest.approx(each[words].mean(), rel=1e-4)
    learned = words & (targets.max(-1) >= 0.6)
    assert 0 < learned.sum() < words.sum()
    assert loss["sure"] == pytest.approx(divergences[learned].mean(), rel=1e-4)


def test_dropout_is_that_of_the_kind_of_batch():
    tagger = make_tagger(labelled_dropout=0.0, unlabelled_dropout=0.6, views=["full"])
    inputs, _ = batch_of(tagger, labelled=True)
    plain = np.array(tagger(inputs)["logits"])
    np.testing.assert_allclose(tagger(inputs, training=True)["logits"], plain)
    inputs["labelled"] = inputs["labelled"] * 0
    assert (
        np.abs(np.array(tagger(inputs, training=True)["logits"]) - plain).max() > 0.01
    )


def test_a_model_without_views_learns_from_labels_alone():
    tagger = make_tagger(views=[])
    inputs, tags = batch_of(tagger)
    outputs = tagger(inputs, training=True)
    assert set(outputs) == {"logits"} and not tagger.auxiliary
    assert float(tagger.compute_loss(inputs, tags, outputs)) > 0


def test_primary_module_is_one_hidden_layer_and_a_softmax(tagger):
    states = np.random.default_rng(0).normal(size=(2, 3, 16)).astype("float32")
    w, u, b = (np.array(v) for v in tagger.primary.get_weights())
    expected = np.maximum(states @ w, 0) @ u + b
    np.testing.assert_allclose(tagger.primary(states), expected, atol=1e-5)


@pytest.mark.usefixtures("graphs")
def test_it_learns_tags():
    tagger = make_tagger(labelled_dropout=0.1)
    sentences, tags = sentences_of(64)
    inputs, targets = one_batch(tagger, sentences, tags)
    tagger.compile(keras.optimizers.Adam(0.05))
    tagger.fit(inputs, targets, epochs=40, batch_size=64, verbose=0)
    found = tagger.predictions(sentences)
    right = [
        LABELS.index(a) == b
        for row, known in zip(found, tags, strict=True)
        for a, b in zip(row, known, strict=True)
    ]
    assert np.mean(right) > 0.95  # the most frequent tag has 0.7


def test_predictions_do_not_depend_on_the_batch(tagger):
    sentences, _ = sentences_of(12)
    alone = [tagger.predictions([words])[0] for words in sentences[:4]]
    assert tagger.predictions(sentences, batch_size=5)[:4] == alone
    assert tagger.predictions([["cat"], []])[1] == []


def test_a_config_has_how_it_learns(tagger):
    changed = {
        "views": ["forward", "future"],
        "word_dropout": 0.3,
        "vat_norm": 2.0,
        "hard_targets": True,
        "confidence": 0.9,
        "cross_view_weight": 0.1,
        "cross_view_ramp": 10,
    }
    config = CrossViewTagger(**tagger.get_config() | changed).get_config()
    assert config == tagger.get_config() | changed


def test_a_preset_has_what_predicts(tagger, tmp_path):
    tagger.save_to_preset(tmp_path / "preset")
    loaded = CrossViewTagger.from_preset(tmp_path / "preset")
    inputs, _ = batch_of(tagger)
    np.testing.assert_array_equal(tagger(inputs)["logits"], loaded(inputs)["logits"])
    assert not (tmp_path / "preset" / "auxiliary").exists()
    assert json.loads(json.dumps(loaded.get_config())) == tagger.get_config()


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"hidden_size": 10**9}, "more than the weights"),
        ({"encoder": {"hidden_sizes": [10**9, 5]}}, "more than the weights"),
        ({"encoder": {"num_filters": -3}}, "a size is -3"),
        ({"encoder": {"projection_size": 4.5}}, "a size is 4.5"),
        ({"labels": None}, "TypeError"),
    ],
)
def test_a_preset_describes_what_it_has(tagger, tmp_path, changes, message):
    tagger.save_to_preset(tmp_path / "preset")
    path = tmp_path / "preset" / "config.json"
    content = json.loads(path.read_text())
    assert tagger.parameters_of(content["config"]) == sum(
        network.count_params() for network in tagger.networks.values()
    )
    encoder = content["config"]["encoder"] | changes.get("encoder", {})
    content["config"] |= {**changes, "encoder": encoder}
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message):
        CrossViewTagger.from_preset(tmp_path / "preset")


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"views": ["sideways"]}, "`views` must be"),
        ({"views": ["past", "past"]}, "`views` must be"),
        ({"word_dropout": 1.0}, "`word_dropout` must be"),
        ({"vat_norm": 0.0}, "`vat_norm` must be above 0"),
        ({"labels": []}, "`labels` must be"),
        ({"labels": ["N", "N"]}, "`labels` must be"),
        ({"unlabelled_dropout": 1.0}, "`unlabelled_dropout` must be"),
        ({"words": ["a", "a"]}, "`words` has 'a' more than once"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_tagger(**arguments)


def test_a_sentence_is_a_list_of_words(tagger):
    with pytest.raises(ValueError, match=r"`sentences\[1\]` must be a list of words"):
        tagger.predictions([["the", "cat"], "the cat"])


def test_presets_are_table_4_1():
    config = CrossViewTagger.from_preset(
        "base", words=["a"], characters="a", labels=["N"]
    ).get_config()
    assert config["encoder"] == {
        "character_size": 50,
        "filter_widths": [2, 3, 4],
        "num_filters": 100,
        "hidden_sizes": [1024, 512],
        "projection_size": 512,
    }
    rates = "labelled_dropout", "unlabelled_dropout", "label_smoothing"
    assert [config[name] for name in rates] == [0.5, 0.2, 0.1]
    assert config["hidden_size"] == 512


def test_small_has_a_quarter_of_the_lstms():
    tagger = CrossViewTagger.from_preset(
        "small", words=["a"], characters="a", labels=["N"]
    )
    config = tagger.get_config()
    assert config["hidden_size"] == 512 // 4
    assert config["encoder"]["hidden_sizes"] == [1024 // 4, 512 // 4]
    assert config["encoder"]["projection_size"] == 512 // 4
    assert tagger.embedding_width == word_size("small") == 300
