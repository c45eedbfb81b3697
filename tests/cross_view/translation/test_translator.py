import json

import keras
import numpy as np
import pytest
from scipy.special import log_softmax, rel_entr, softmax

from keras_corrupt.cross_view import CrossViewTranslator
from keras_corrupt.cross_view.text.sentences import Sentences
from keras_corrupt.cross_view.translation.translator import (
    END,
    TRANSLATION_VIEWS,
    UNKNOWN,
    UNSURE,
)
from tests.conftest import COMPILED, gradients_of
from tests.cross_view.conftest import (
    GLOSSES,
    SIZES,
    TRANSLATOR,
    make_translator,
    sentences_of,
    translations_of,
)


def batch_of(translator, count=4, labelled=True):
    """The inputs and targets of a batch, with a row that fills it up."""
    sentences, _ = sentences_of(count)
    labels = translator.classes_of(translations_of(sentences)) if labelled else None
    return translator.batches(Sentences(sentences), labels, count + 1).batch(0)


def strong(translator):
    """Weights so large that states show what is far away."""
    for weight in translator.trainable_variables:
        weight.assign(2 * weight)
    return translator


def logits_of(translator, inputs):
    """Each decoder's, without dropout."""
    encoded = translator.encode(inputs)
    found = {"primary": translator.predict_from(encoded)}
    for view, module in zip(TRANSLATION_VIEWS, translator.auxiliary, strict=True):
        states = encoded["before" if view == "future" else "states"]
        found[view] = module(encoded["source"], encoded["words"], states)
    return {name: np.array(logits) for name, logits in found.items()}


def changed_in(inputs, name, place, value):
    changed = inputs[name].copy()
    changed[place] = value
    return {**inputs, name: changed}


def test_a_decoder_sees_the_words_before_and_future_not_the_last_of_them(translator):
    inputs, targets = batch_of(strong(translator))
    row = int((targets >= 0).sum(axis=1).argmax())
    length = (targets[row] >= 0).sum()
    assert length > 4
    before = logits_of(translator, inputs)
    for other in range(length):
        changed = changed_in(inputs, "target_ids", (row, other), UNKNOWN)
        after = logits_of(translator, changed)
        for name, logits in after.items():
            differs = np.abs(logits - before[name])[row, :length].max(-1) > 0
            gap = 2 if name == "future" else 1
            expected = np.arange(length) >= other + gap
            np.testing.assert_array_equal(differs, expected, err_msg=name)


def test_every_decoder_sees_the_sentence_and_none_sees_padding(translator):
    inputs, targets = batch_of(strong(translator))
    before = logits_of(translator, inputs)
    lengths = inputs["padding_mask"].sum(axis=1)
    row, length = int(lengths.argmax()), lengths.max()
    for word in range(length):
        changed = changed_in(inputs, "word_ids", (row, word), 1)
        for name, logits in logits_of(translator, changed).items():
            differs = np.abs(logits - before[name]).max(-1) > 0
            assert differs[row].all() and not np.delete(differs, row, axis=0).any()
    padding = inputs["padding_mask"] == 0
    changed = changed_in(inputs, "word_ids", padding, 5)
    changed = changed_in(changed, "character_ids", padding, 7)
    for name, logits in logits_of(translator, changed).items():
        np.testing.assert_array_equal(logits, before[name])
    # What follows a translation changes none of its words.
    changed = changed_in(inputs, "target_ids", targets < 0, 3)
    for name, logits in logits_of(translator, changed).items():
        known = targets >= 0
        np.testing.assert_array_equal(logits[known], before[name][known])


def test_attention_dropout_is_of_its_own_decoder_alone(translator):
    translator.labelled_dropout = translator.unlabelled_dropout = 0.0
    inputs, _ = batch_of(translator)
    plain = logits_of(translator, inputs)
    found = translator.auxiliary_logits(inputs, translator.encode(inputs, True))
    for view, logits in found.items():
        same = np.allclose(np.array(logits), plain[view], atol=1e-5)
        assert same == (view != "attention_dropout")
    again = translator.auxiliary_logits(inputs, translator.encode(inputs, True))
    a, b = (np.array(x["attention_dropout"]) for x in (found, again))
    assert np.abs(a - b).max() > 1e-4


def test_decoders_share_embeddings_and_lstms_not_attention_and_softmax(translator):
    modules = [translator.primary, *translator.auxiliary]
    weights = [id(v) for module in modules for v in module.trainable_variables]
    assert len(set(weights)) == 4 * 3
    shared = translator.encoder.trainable_variables
    shared = shared + translator.decoder.trainable_variables
    assert len(translator.trainable_variables) == 4 * 3 + len(shared)


def test_losses_against_numpy(translator):
    inputs, targets = batch_of(translator)
    known = targets >= 0
    outputs = translator(inputs, training=True)
    found = float(translator.compute_loss(inputs, targets, outputs))
    each = log_softmax(np.array(outputs["logits"], "float64"), axis=-1)
    each = np.take_along_axis(each, np.maximum(targets, 0)[..., None], axis=-1)[..., 0]
    assert found == pytest.approx(-each[known].mean(), rel=1e-4)

    translator.labelled_dropout = translator.unlabelled_dropout = 0.0
    for module in translator.auxiliary:
        module.attention_dropout = 0.0
    inputs, targets = batch_of(translator, labelled=False)
    outputs = translator(inputs, training=True)
    found = float(translator.compute_loss(inputs, targets, outputs))
    ids = np.array(outputs["targets"])
    words = np.zeros(ids.shape, bool)
    for row in range(4):  # not the one that fills up
        words[row, : ids[row].tolist().index(END) + 1] = True
    logits = logits_of(translator, {**inputs, "target_ids": ids})
    distributions = np.full((*ids.shape, 14), 0.1 / 14)
    np.put_along_axis(distributions, ids[..., None], 0.9 + 0.1 / 14, axis=-1)
    expected = [
        rel_entr(distributions, softmax(logits[view].astype("float64"), -1)).sum(-1)
        for view in TRANSLATION_VIEWS
    ]
    assert found == pytest.approx(sum(expected)[words].mean(), rel=1e-3)
    for divergence, known in zip(outputs["auxiliary"], expected, strict=True):
        np.testing.assert_allclose(
            np.array(divergence)[words], known[words], atol=1e-4, rtol=1e-3
        )


def test_targets_are_the_primary_decoders_without_dropout(translator):
    inputs, _ = batch_of(strong(translator), labelled=False)
    outputs = translator(inputs, training=True)
    searched = {n: x for n, x in inputs.items() if n != "target_ids"}
    expected = np.array(translator(searched)["target_ids"])
    np.testing.assert_array_equal(outputs["targets"], expected)
    limits = np.where(
        inputs["padding_mask"].any(1), 2 * inputs["padding_mask"].sum(1) + 8, 1
    )
    for row, limit in zip(expected, limits, strict=True):
        assert row.tolist().index(END) < limit


@pytest.mark.parametrize("beam_size", [1, 10])
def test_search_goes_on_with_the_decoders_own_predictions(beam_size):
    translator = strong(make_translator(beam_size=beam_size))
    inputs, _ = batch_of(translator, labelled=False)
    found, scores, _ = map(np.array, translator.search(inputs))
    logits = logits_of(translator, {**inputs, "target_ids": found})["primary"]
    ways = log_softmax(logits.astype("float64"), axis=-1)
    for row in range(4):  # not the one that fills up
        length = found[row].tolist().index(END) + 1
        chosen = ways[row, np.arange(length), found[row, :length]]
        assert scores[row] == pytest.approx(chosen.sum(), rel=1e-4)
        limit = 2 * inputs["padding_mask"][row].sum() + 8
        free = min(length, limit - 1)  # at its limit it must end
        if beam_size == 1:
            best = logits[row, :free].argmax(-1)
            np.testing.assert_array_equal(found[row, :free], best)


def test_translations_that_the_teacher_is_unsure_of_teach_nothing(translator):
    inputs, _ = batch_of(strong(translator), labelled=False)
    found, _, probabilities = map(np.array, translator.search(inputs))
    some = make_translator(confidence=float(np.sort(probabilities[:4])[1:3].mean()))
    some.set_weights(translator.get_weights())
    outputs = some(inputs, training=True)
    sure = probabilities >= some.confidence
    assert sure[:4].sum() == 2
    targets = np.where(sure[:, None], found, UNSURE)
    np.testing.assert_array_equal(outputs["targets"], targets)
    loss, words = some.cross_view_loss(inputs, outputs)
    lengths = [row.tolist().index(END) + 1 for row in found[:4]]
    assert words == np.array(lengths)[sure[:4]].sum()
    divergences = sum(map(np.array, outputs["auxiliary"]))
    learned = [divergences[i, :n] for i, n in enumerate(lengths) if sure[i]]
    assert float(loss) == pytest.approx(np.concatenate(learned).mean(), rel=1e-5)


@pytest.mark.parametrize("labelled", [True, False])
def test_each_kind_of_batch_trains_its_own_decoders(translator, labelled):
    inputs, targets = batch_of(translator, labelled=labelled)

    def loss():
        outputs = translator(inputs, training=True)
        return translator.compute_loss(inputs, targets, outputs)

    found = gradients_of(loss, translator)

    def trained(network):
        return any(found[id(v)].any() for v in network.trainable_variables)

    assert trained(translator.primary) == labelled
    for module in translator.auxiliary:
        assert trained(module) != labelled
    for shared in (translator.encoder.embeddings, *translator.decoder.lstms):
        assert trained(shared)
    assert trained(translator.decoder.embedding) and trained(
        translator.encoder.lstms[0]
    )


@pytest.mark.usefixtures("graphs")
def test_in_word_dropout_the_primary_decoder_learns():
    translator = make_translator(views=["word_dropout"], word_dropout=0.4)
    inputs, targets = batch_of(translator, labelled=False)
    assert not translator.auxiliary
    translator.compile(keras.optimizers.SGD(0.1), jit_compile=COMPILED)
    before = np.array(translator.primary.output_kernel)
    losses = translator.train_on_batch(inputs, targets, return_dict=True)
    assert losses["cross_view_loss"] > 0
    assert np.abs(np.array(translator.primary.output_kernel) - before).max() > 0


@pytest.mark.usefixtures("graphs")
def test_it_learns_to_translate():
    sizes = {"hidden_sizes": [24, 24], "projection_size": 16}
    translator = make_translator(
        encoder=SIZES["encoder"] | sizes,
        decoder=TRANSLATOR["decoder"] | sizes,
        hidden_size=24,
        labelled_dropout=0.0,
        views=(),
    )
    sentences, _ = sentences_of(32, longest=4)
    expected = translations_of(sentences)
    labels = translator.classes_of(expected)
    inputs, targets = translator.batches(Sentences(sentences), labels, 32).batch(0)
    translator.compile(keras.optimizers.Adam(0.01), jit_compile=False)
    translator.fit(inputs, targets, epochs=120, batch_size=32, verbose=0)
    found = translator.predictions(sentences)
    assert np.mean([a == b for a, b in zip(found, expected, strict=True)]) > 0.7


def test_in_bfloat16_it_computes_the_same_but_for_rounding(translator):
    rounded = make_translator(dtype="mixed_bfloat16")
    strong(translator)
    rounded.set_weights(translator.get_weights())
    inputs, _ = batch_of(translator)
    for name, expected in logits_of(translator, inputs).items():
        found = logits_of(rounded, inputs)[name].astype("float32")
        error = np.abs(found - expected).max()
        assert 0 < error < 0.05 * np.abs(expected).max(), name
    # The search goes on from cells in float32.
    sentences, _ = sentences_of(2)
    assert len(rounded.predictions(sentences)) == 2


def test_predictions_are_the_same_whatever_the_batch():
    translator, (sentences, _) = make_translator(beam_size=1), sentences_of(7)
    kernel = 20 * np.array(translator.primary.output_kernel)
    kernel[:, END] = 0.0  # so that no translation is empty
    translator.primary.output_kernel.assign(kernel)
    found = translator.predictions([*sentences, []], batch_size=3)
    assert found[-1] == "" and all(found[:-1])
    texts = [" ".join(words) for words in sentences]
    assert translator.predictions(texts, batch_size=8) == found[:-1]


def test_words_are_classes_and_the_end_is_one():
    translator = make_translator(labels=["Katze", "￭.", "saß", "saß."])
    (classes,) = translator.classes_of(["Eine Katze saß."])
    assert classes.tolist() == [UNKNOWN, 2, 4, 3, END]
    assert translator.decoded(classes) == "UNK Katze saß."
    translator = make_translator(labels=["Katze", "￭.", "saß", "saß."], in_words=True)
    (classes,) = translator.classes_of(["Eine Katze saß."])
    assert classes.tolist() == [UNKNOWN, 2, 5, END]
    assert translator.decoded(np.append(classes, 2)) == "UNK Katze saß."


def test_a_preset_has_what_predicts(translator, tmp_path):
    strong(translator).save_to_preset(tmp_path / "preset")
    loaded = CrossViewTranslator.from_preset(tmp_path / "preset")
    inputs, _ = batch_of(translator)
    np.testing.assert_array_equal(
        translator(inputs)["logits"], loaded(inputs)["logits"]
    )
    text = ["The quick dog sat."]
    assert loaded.predictions(text) == translator.predictions(text)
    assert json.loads(json.dumps(loaded.get_config())) == translator.get_config()
    content = json.loads((tmp_path / "preset" / "config.json").read_text())
    assert translator.parameters_of(content["config"]) == sum(
        network.count_params() for network in translator.networks.values()
    )
    content["config"]["decoder"]["hidden_sizes"] = [10**6]
    (tmp_path / "preset" / "config.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match="more than the weights"):
        CrossViewTranslator.from_preset(tmp_path / "preset")


def test_base_is_of_the_thesis_sizes():
    translator = CrossViewTranslator.from_preset(
        "base", words=["cat"], characters="act", labels=GLOSSES
    )
    assert translator.beam_size == 10 and translator.target_smoothing == 0.1
    assert [lstm.hidden_size for lstm in translator.encoder.lstms] == [1024, 512]
    assert [lstm.hidden_size for lstm in translator.decoder.lstms] == [1024, 1024]
    assert translator.decoder.projection_size == translator.hidden_size == 512


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"views": ["vat"]}, "`views` must be .*attention_dropout, future, full, word"),
        ({"views": ["forward"]}, "`views` must be"),
        ({"beam_size": 0}, "`beam_size` must be a positive whole number; got 0"),
        ({"length_penalty": -1}, "`length_penalty` must be 0 or more; got -1"),
        ({"attention_dropout": 1.0}, "`attention_dropout` must be"),
        ({"target_smoothing": -0.1}, "`target_smoothing` must be"),
        ({"hard_targets": False}, "`hard_targets` must be True"),
        ({"confidence": 1.0}, "`confidence` must be"),
        ({"labels": ["a", "a"]}, "`labels` must be different"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_translator(**arguments)


def test_a_sentence_is_a_string_or_a_list_of_words(translator):
    with pytest.raises(ValueError, match=r"`sentences\[1\]` must be a string"):
        translator.predictions(["the cat", 3])
