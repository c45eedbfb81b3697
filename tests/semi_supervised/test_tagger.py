import json

import keras
import numpy as np
import pytest
from scipy.special import softmax

from keras_corrupt.semi_supervised import CrossViewTagger
from keras_corrupt.semi_supervised.batches import in_order
from keras_corrupt.semi_supervised.tagger import VIEWS, views_of
from tests.conftest import gradients_of
from tests.semi_supervised.conftest import LABELS, make_tagger, sentences_of

SEES = {
    "forward": lambda other, word: other <= word,
    "backward": lambda other, word: other >= word,
    "future": lambda other, word: other < word,
    "past": lambda other, word: other > word,
    "full": lambda other, word: True,
}


def batch_of(tagger, count=4, labelled=True):
    sentences, tags = sentences_of(count)
    labels = tags if labelled else None
    ((_, inputs, targets),) = in_order(sentences, tagger.vocabulary, labels, count)
    return inputs, targets


@pytest.mark.tensorflow_only
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


@pytest.mark.tensorflow_only
def test_it_learns_tags():
    tagger = make_tagger(labelled_dropout=0.1)
    sentences, tags = sentences_of(64)
    ((_, inputs, targets),) = in_order(sentences, tagger.vocabulary, tags, 64)
    tagger.compile(keras.optimizers.Adam(0.05))
    tagger.fit(inputs, targets, epochs=40, batch_size=64, verbose=0)
    found = tagger.predictions(sentences)
    right = [
        LABELS.index(a) == b
        for row, known in zip(found, tags, strict=True)
        for a, b in zip(row, known, strict=True)
    ]
    assert np.mean(right) > 0.95  # the most frequent tag has 0.7


@pytest.mark.tensorflow_only
def test_predictions_do_not_depend_on_the_batch(tagger):
    sentences, _ = sentences_of(12)
    alone = [tagger.predictions([words])[0] for words in sentences[:4]]
    assert tagger.predictions(sentences, batch_size=5)[:4] == alone
    assert tagger.predictions([["cat"], []])[1] == []


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
    assert [config[name] for name in rates] == [0.5, 0.8, 0.1]
    assert config["hidden_size"] == 512
