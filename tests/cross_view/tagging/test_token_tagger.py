import keras
import numpy as np
import pytest
from scipy.special import softmax

from keras_corrupt.cross_view.text.sentences import Sentences
from keras_corrupt.cross_view.views import VIEWS
from keras_corrupt.downstream import TokenTagger
from tests.conftest import gradients_of
from tests.cross_view.conftest import (
    LABELS,
    SEES,
    make_token_tagger,
    one_batch,
    sentences_of,
)

#: Words of one, two and three pieces, with padding behind them.
SENTENCES = [
    "the quick cat sat under a dog".split(),
    "dog under the rug sat slow".split(),
    ["cat"],
]


def states_at_words(model, inputs, view):
    """What a module reads of the words of the second sentence."""
    hidden = model.tagger.encoder(inputs)
    states = np.array(model.states(inputs, hidden)[view])
    return states[1][inputs["word_starts"][1] > 0]


@pytest.mark.parametrize("view", VIEWS)
def test_a_module_sees_what_it_may_and_all_of_that(view):
    model = make_token_tagger()
    inputs, _ = one_batch(model, SENTENCES)
    assert inputs["padding_mask"][1].sum() < inputs["padding_mask"].shape[1]
    before = states_at_words(model, inputs, view)
    starts = np.flatnonzero(inputs["word_starts"][1])
    ends = [*starts[1:], inputs["padding_mask"][1].sum() - 1]
    assert max(np.subtract(ends, starts)) == 3
    for other, (start, end) in enumerate(zip(starts, ends, strict=True)):
        for piece in range(start, end):
            token_ids = inputs["token_ids"].copy()
            token_ids[1, piece] = 1
            after = states_at_words(model, {**inputs, "token_ids": token_ids}, view)
            differs = np.abs(after - before).max(axis=1)
            expected = [SEES[view](other, word) for word in range(len(starts))]
            assert (differs > 0).tolist() == expected, (other, piece)


@pytest.mark.parametrize("view", ["forward", "future"])
def test_what_follows_is_not_seen_whatever_its_length(view):
    model = make_token_tagger()
    before, after = (
        states_at_words(
            model, one_batch(model, [SENTENCES[0], SENTENCES[1][:3] + rest])[0], view
        )[:3]
        for rest in (["rug", "sat", "slow"], ["under"] * 4)
    )
    np.testing.assert_allclose(before, after, atol=1e-5)


def test_padding_is_seen_by_no_module():
    model = make_token_tagger()
    inputs, _ = one_batch(model, SENTENCES)
    padding = inputs["padding_mask"] == 0
    changed = {**inputs, "token_ids": np.where(padding, 7, inputs["token_ids"])}
    for view in VIEWS:
        a, b = (states_at_words(model, x, view) for x in (inputs, changed))
        np.testing.assert_array_equal(a, b)


def test_batches_hold_each_word_once_with_its_tag_and_its_successor():
    model = make_token_tagger()
    sentences, tags = sentences_of(18, longest=30)
    batches = model.batches(Sentences(sentences), np.concatenate(tags), 4, seed=1)
    assert len(batches.sentences) > 18  # some are cut
    found = []
    for number in range(len(batches)):
        inputs, targets = batches.batch(number)
        assert inputs["token_ids"].shape[0] == 4
        for row in range(4):
            starts = np.flatnonzero(inputs["word_starts"][row])
            following = inputs["next_starts"][row][starts]
            length = inputs["padding_mask"][row].sum()
            assert following.tolist() == [*starts[1:], length - 1][: len(starts)]
            pieces = model.tagger.tokenizer.tokens(inputs["token_ids"][row])
            for start, end in zip(starts, following, strict=True):
                word = "".join(pieces[start:end]).replace("##", "")
                found.append((word, targets[row, start]))
    known = []
    for words, of_words in zip(sentences, tags, strict=True):
        known += zip(words, of_words, strict=True)
    assert sorted(found) == sorted(known)


def test_targets_are_the_primary_modules_without_dropout():
    model = make_token_tagger(dropout=0.5)
    inputs, _ = one_batch(model, SENTENCES)
    outputs = model(inputs, training=True)
    plain = np.array(model.tagger(inputs)["logits"])
    np.testing.assert_allclose(outputs["targets"], softmax(plain, -1), atol=1e-5)
    assert not np.allclose(outputs["logits"], plain, atol=1e-3)


@pytest.mark.parametrize("labelled", [True, False])
def test_each_kind_of_batch_trains_its_own_modules(labelled):
    model = make_token_tagger()
    sentences, tags = sentences_of(4)
    inputs, targets = one_batch(model, sentences, tags if labelled else None)

    def loss():
        return model.compute_loss(inputs, targets, model(inputs, training=True))

    found = gradients_of(loss, model)

    def trained(network):
        return any(found[id(v)].any() for v in network.trainable_variables)

    assert trained(model.tagger.head) == labelled
    assert all(trained(module) != labelled for module in model.auxiliary)
    assert trained(model.tagger.encoder)
    assert float(loss()) > 0


def test_what_unlabelled_batches_alone_compute_trains_the_encoder():
    model = make_token_tagger(views=["past", "word_dropout", "vat"])
    sentences, _ = sentences_of(4)
    inputs, targets = one_batch(model, sentences)
    model.compile(keras.optimizers.SGD(0.1))
    changing = [
        v for v in model.tagger.encoder.trainable_variables if "kernel" in v.path
    ]
    changing += [v for v in model.non_trainable_variables if "seed" in v.path]
    before = [np.array(v) for v in changing]
    for _ in range(2):
        model.train_on_batch(inputs, targets)
    assert all((np.array(b) != a).any() for a, b in zip(before, changing, strict=True))


@pytest.mark.usefixtures("graphs")
def test_it_learns_tags():
    model = make_token_tagger()
    sentences, tags = sentences_of(64)
    inputs, targets = one_batch(model, sentences, tags)
    model.compile(keras.optimizers.Adam(0.01))
    model.fit(inputs, targets, epochs=40, batch_size=64, verbose=0)
    right = [
        LABELS.index(a) == b
        for row, known in zip(model.predictions(sentences), tags, strict=True)
        for a, b in zip(row, known, strict=True)
    ]
    assert np.mean(right) > 0.95  # the most frequent tag has 0.7


def test_word_dropout_masks_whole_words():
    model = make_token_tagger(views=["word_dropout"], word_dropout=0.4)
    inputs, _ = one_batch(model, sentences_of(40)[0])
    token_ids = np.array(model.without_some_words(inputs)["token_ids"])
    masked = token_ids != inputs["token_ids"]
    assert (token_ids[masked] == model.tagger.tokenizer.mask_id).all()
    outside = np.ones(masked.shape, bool)
    shares = []
    for row, starts in enumerate(inputs["word_starts"]):
        for start in np.flatnonzero(starts):
            pieces = slice(start, inputs["next_starts"][row, start])
            outside[row, pieces] = False
            assert len(set(masked[row, pieces])) == 1
            shares.append(masked[row, start])
    assert 0.3 < np.mean(shares) < 0.5 and not masked[outside].any()


def test_adversarial_noise_is_of_tokens_and_of_its_norm():
    model = make_token_tagger(views=["vat"], vat_norm=0.7)
    inputs, _ = one_batch(model, SENTENCES)
    targets = softmax(np.array(model(inputs)["logits"]), axis=-1)
    noise = np.array(model.adversarial_noise(inputs, targets))
    np.testing.assert_allclose(np.sqrt((noise**2).sum((1, 2))), 0.7, rtol=1e-4)
    assert not noise[inputs["padding_mask"] == 0].any()


def test_what_is_saved_is_a_token_tagger(tmp_path):
    model = make_token_tagger()
    model.save_to_preset(tmp_path / "preset")
    loaded = TokenTagger.from_preset(tmp_path / "preset")
    inputs, _ = one_batch(model, SENTENCES)
    np.testing.assert_array_equal(model(inputs)["logits"], loaded(inputs)["logits"])


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"views": ["sideways"]}, "`views` must be"),
        ({"unlabelled_dropout": 1.0}, "`unlabelled_dropout` must be"),
        ({"label_smoothing": -0.1}, "`label_smoothing` must be"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_token_tagger(**arguments)
