import json

import keras
import numpy as np
import pytest
from scipy.special import log_softmax, rel_entr, softmax

from keras_corrupt.cross_view import CrossViewParser
from keras_corrupt.cross_view.parsing.parser import IMPOSSIBLE, VIEW_PAIRS
from tests.conftest import gradients_of
from tests.cross_view.conftest import (
    RELATIONS,
    SEES,
    batch_of_trees,
    make_parser,
    sentences_of,
    trees_of,
)

pytest.importorskip("ufal.chu_liu_edmonds")


def batch_of(parser, count=4, labelled=True):
    sentences, _ = sentences_of(count)
    return batch_of_trees(parser, sentences, trees_of(sentences) if labelled else None)


def edges(logits):
    """`[..., words, heads, relations]`."""
    return np.array(logits).reshape(*logits.shape[:-1], -1, len(RELATIONS))


@pytest.mark.parametrize("view", VIEW_PAIRS)
def test_a_module_sees_what_it_may_and_all_of_that(parser, view):
    inputs, _ = batch_of(parser)
    lengths = inputs["padding_mask"].sum(axis=1)
    row = int(np.argsort(lengths)[-2])  # there is padding behind it
    length = lengths[row]
    assert 3 < length < inputs["word_ids"].shape[1]
    module = parser.auxiliary[VIEW_PAIRS.index(view)]
    for layer in (module.head, module.dependent):
        layer.bias.assign(keras.ops.ones(layer.bias.shape))  # all units are alive
    for weight in parser.encoder.trainable_variables:
        weight.assign(2 * weight)  # so that states show what is far away
    of_head, of_dependent = {"full": ["full"] * 2}.get(view) or view.split("_")

    def scores(inputs):
        return edges(module(parser.encode(inputs)[view]))[row, :length, : length + 1]

    before = scores(inputs)
    for other in range(length):
        changed = {name: array.copy() for name, array in inputs.items()}
        changed["word_ids"][row, other] = 1
        changed["character_ids"][row, other] = 0
        differs = np.abs(scores(changed) - before).max(axis=-1) > 0
        for word in range(length):
            sees = SEES[of_dependent](other, word)
            assert differs[word, 0] == sees, (other, word)  # the root has no words
            for head in range(length):
                sees_edge = sees or SEES[of_head](other, head)
                assert differs[word, head + 1] == sees_edge, (other, word, head)


def test_padding_is_seen_by_no_module_and_is_no_head(parser):
    inputs, _ = batch_of(parser)
    changed = {name: array.copy() for name, array in inputs.items()}
    padding = inputs["padding_mask"] == 0
    assert padding.any()
    changed["word_ids"][padding] = 5
    changed["character_ids"][padding] = 7
    before, after = (parser.encode(x) for x in (inputs, changed))
    modules = zip(parser.module_views, parser.auxiliary, strict=True)
    for view, module in [*modules, ("full", parser.primary)]:
        a, b = (edges(module(views[view])) for views in (before, after))
        np.testing.assert_array_equal(a[~padding], b[~padding])
        for row, no_word in zip(a, padding, strict=True):
            impossible = np.concatenate([[False], no_word])
            assert (row[:, impossible] == IMPOSSIBLE).all()
            assert (row[:, ~impossible] > IMPOSSIBLE).all()


def test_scores_are_biaffine_in_two_hidden_layers(parser):
    rng = np.random.default_rng(0)
    heads, dependents = rng.normal(size=(2, 2, 3, 16)).astype("float32")
    weights = {v.path.split("primary/")[1]: np.array(v) for v in parser.primary.weights}
    for name in ("head/bias", "dependent/bias"):
        weights[name] = rng.normal(size=7).astype("float32")
    for variable in parser.primary.weights:
        variable.assign(weights[variable.path.split("primary/")[1]])
    found = parser.primary((heads, dependents, np.ones((2, 3), "int32")))
    assert found.shape == (2, 3, 4 * 4)
    for sentence in range(2):
        for word in range(3):
            for head in range(4):  # the root and three words
                z1 = heads[sentence, head - 1] if head else weights["root"]
                z2 = dependents[sentence, word]
                h1 = np.maximum(z1 @ weights["head/kernel"] + weights["head/bias"], 0)
                h2 = z2 @ weights["dependent/kernel"] + weights["dependent/bias"]
                h2 = np.maximum(h2, 0)
                for relation in range(4):
                    matrix = weights["by_relation"][relation] + weights["shared"]
                    np.testing.assert_allclose(
                        found[sentence, word, head * 4 + relation],
                        h1 @ matrix @ h2,
                        atol=1e-5,
                    )


def test_a_class_is_a_head_and_a_relation(parser):
    trees = [[(2, "det"), (0, "root")], [(0, "dep"), (1, "obl")]]
    assert parser.classes_of(trees).tolist() == [8, 3, -1, 6]
    _, targets = batch_of_trees(parser, [["the", "cat"], ["a", "dog"]], trees)
    np.testing.assert_array_equal(targets[:, :2], [[8, 3], [-1, 6]])


def test_losses_are_of_heads_and_relations_together(parser):
    inputs, targets = batch_of(parser)
    words = inputs["padding_mask"] > 0
    outputs = parser(inputs, training=True)
    found = float(parser.compute_loss(inputs, targets, outputs))
    each = log_softmax(np.array(outputs["logits"], "float64"), axis=-1)
    each = np.take_along_axis(each, np.maximum(targets, 0)[..., None], axis=-1)[..., 0]
    assert found == pytest.approx(-each[words].mean(), rel=1e-4)

    inputs["labelled"] = inputs["labelled"] * 0
    outputs = parser(inputs, training=True)
    found = float(parser.compute_loss(inputs, targets, outputs))
    primary = np.array(parser(inputs)["logits"], "float64")  # without dropout
    divergences = [
        rel_entr(softmax(primary, -1), softmax(np.array(logits, "float64"), -1)).sum(-1)
        for logits in outputs["auxiliary"]
    ]
    assert len(divergences) == 5
    assert found == pytest.approx(sum(divergences)[words].mean(), rel=1e-2)
    assert found > 1e-5


@pytest.mark.parametrize("labelled", [True, False])
def test_each_kind_of_batch_trains_its_own_modules(parser, labelled):
    inputs, targets = batch_of(parser, labelled=labelled)

    def loss():
        outputs = parser(inputs, training=True)
        return parser.compute_loss(inputs, targets, outputs)

    found = gradients_of(loss, parser)

    def trained(network):
        return any(found[id(v)].any() for v in network.trainable_variables)

    assert trained(parser.primary) == labelled
    for module in parser.auxiliary:
        assert trained(module) != labelled
    assert trained(parser.encoder.embeddings)
    (network,) = [parser.primary] if labelled else parser.auxiliary[:1]
    assert found[id(network.root)].any() and found[id(network.shared)].any()


@pytest.mark.usefixtures("graphs")
def test_in_the_baselines_the_primary_module_learns():
    parser = make_parser(views=["word_dropout", "vat"], word_dropout=0.4)
    inputs, targets = batch_of(parser, labelled=False)
    assert not parser.auxiliary and parser.vat_norm == 1.0
    probabilities = softmax(np.array(parser(inputs)["logits"]), axis=-1)
    noise = np.array(parser.adversarial_noise(inputs, probabilities))
    norms = np.sqrt((noise**2).sum((1, 2)))
    np.testing.assert_allclose(norms, 1.0, rtol=1e-4)
    parser.compile(keras.optimizers.SGD(0.1))
    before = np.array(parser.primary.root)
    losses = parser.train_on_batch(inputs, targets, return_dict=True)
    assert losses["cross_view_loss"] > 0
    assert np.abs(np.array(parser.primary.root) - before).max() > 0


def test_it_reads_words_alone(parser):
    inputs, _ = batch_of(parser)
    of_words = {"word_ids", "character_ids", "padding_mask"}
    assert set(inputs) == {*of_words, "labelled"}  # of which the last is for training
    expected = np.array(parser(inputs)["logits"])
    found = parser({name: inputs[name] for name in of_words})["logits"]
    np.testing.assert_array_equal(found, expected)


def test_hard_targets():
    parser = make_parser(views=["full"], hard_targets=True)
    inputs, targets = batch_of(parser, labelled=False)
    words = inputs["padding_mask"] > 0
    outputs = parser(inputs, training=True)
    found = float(parser.compute_loss(inputs, targets, outputs))
    likeliest = np.array(outputs["targets"]).argmax(-1)[..., None]
    each = log_softmax(np.array(outputs["auxiliary"][0], "float64"), axis=-1)
    each = np.take_along_axis(each, likeliest, axis=-1)[..., 0]
    assert found == pytest.approx(-each[words].mean(), rel=1e-4)


@pytest.mark.usefixtures("graphs")
def test_it_learns_trees():
    parser = make_parser(labelled_dropout=0.1)
    sentences, _ = sentences_of(64)
    trees = trees_of(sentences)
    inputs, targets = batch_of_trees(parser, sentences, trees)
    parser.compile(keras.optimizers.Adam(0.03))
    parser.fit(inputs, targets, epochs=80, batch_size=64, verbose=0)
    found = parser.predictions(sentences)
    right = [
        a == b
        for tree, known in zip(found, trees, strict=True)
        for a, b in zip(tree, known, strict=True)
    ]
    assert np.mean(right) > 0.9


def test_predictions_are_the_best_trees_whatever_the_batch(parser):
    for weight in parser.trainable_variables:
        weight.assign(3 * weight)  # scores that rounding does not change
    sentences, _ = sentences_of(12)
    found = parser.predictions([*sentences, []], batch_size=5)
    assert found[-1] == []
    inputs, _ = batch_of_trees(parser, sentences)
    logits = edges(parser(inputs)["logits"])
    for words, tree, scores in zip(sentences, found, logits, strict=False):
        assert [head for head, _ in tree].count(0) == 1
        for word, (head, relation) in enumerate(tree):
            assert 0 <= head <= len(words)
            assert scores[word, head].argmax() == RELATIONS.index(relation)
    alone = [parser.predictions([words])[0] for words in sentences[:3]]
    assert found[:3] == alone


def test_a_preset_has_what_predicts(parser, tmp_path):
    parser.save_to_preset(tmp_path / "preset")
    loaded = CrossViewParser.from_preset(tmp_path / "preset")
    inputs, _ = batch_of(parser)
    np.testing.assert_array_equal(parser(inputs)["logits"], loaded(inputs)["logits"])
    sentence = [["the", "quick", "dog", "sat"]]
    assert loaded.predictions(sentence) == parser.predictions(sentence)
    assert json.loads(json.dumps(loaded.get_config())) == parser.get_config()
    content = json.loads((tmp_path / "preset" / "config.json").read_text())
    assert parser.parameters_of(content["config"]) == sum(
        network.count_params() for network in parser.networks.values()
    )
    content["config"]["hidden_size"] = 10**6
    (tmp_path / "preset" / "config.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match="more than the weights"):
        CrossViewParser.from_preset(tmp_path / "preset")


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"views": ["future"]}, "`views` must be .*forward_backward"),
        ({"label_smoothing": 0.1}, "`label_smoothing` must be 0 for a parser"),
        ({"labels": ["det", "det"]}, "`labels` must be"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_parser(**arguments)


def test_a_sentence_is_a_list_of_words(parser):
    with pytest.raises(ValueError, match=r"`sentences\[1\]` must be a list of words"):
        parser.predictions([["the", "cat"], "the cat"])
