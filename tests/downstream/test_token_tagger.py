import keras
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_corrupt.downstream import TokenTagger
from keras_corrupt.downstream.token_tagger import windows
from tests.downstream.conftest import ENCODER, scrambled

TAGS = ["D", "N", "V"]
SENTENCES = [["The", "cats", "ran"], ["dogs", "sat", "under", "the", "mats"], [], ["a"]]


@pytest.fixture
def tagger(tokenizer):
    return scrambled(TokenTagger(ENCODER, tokenizer, labels=TAGS))


@given(st.lists(st.integers(1, 9), max_size=30), st.integers(9, 20))
def test_windows_hold_all_words_and_are_as_few_as_can_be(lengths, room):
    found = windows(lengths, room)
    assert found[0][0] == 0 and found[-1][1] == len(lengths)
    for (_, stop), (start, following) in zip(found, found[1:], strict=False):
        assert stop == start
        # The next word would not have fitted.
        assert sum(lengths[_ : stop + 1]) > room and following > start
    assert all(sum(lengths[start:stop]) <= room for start, stop in found)


class TestFeatures:
    def test_tags_stand_at_first_pieces(self, tagger, tokenizer):
        (feature,) = tagger.features([["The", "cats", "ran"]], [["D", "N", "V"]])
        pieces = ["[CLS]", "the", "cat", "##s", "ran", "[SEP]"]
        assert tokenizer.tokens(feature.inputs["token_ids"]) == pieces
        assert feature.inputs["word_starts"].tolist() == [0, 1, 1, 0, 1, 0]
        assert feature.targets["tag"].tolist() == [0, 0, 1, 0, 2, 0]
        assert feature.inputs["segment_ids"].tolist() == [0] * 6

    def test_a_word_of_nothing_is_unknown(self, tagger, tokenizer):
        (feature,) = tagger.features([["cat", "\x07", "", "dog"]])
        pieces = ["[CLS]", "cat", "[UNK]", "[UNK]", "dog", "[SEP]"]
        assert tokenizer.tokens(feature.inputs["token_ids"]) == pieces
        assert feature.inputs["word_starts"].sum() == 4
        assert feature.targets == {}

    def test_long_sentences_are_cut_between_words(self, tagger):
        words = ["cats"] * 25  # two pieces each; a window holds 22
        features = tagger.features(
            [["a"], words], [["D"], ["N", "V", "N", "V", "D"] * 5]
        )
        assert [f.example for f in features] == [0, 1, 1, 1]
        starts = [f.inputs["word_starts"].sum() for f in features]
        assert starts == [1, 11, 11, 3]
        tags = [f.targets["tag"][f.inputs["word_starts"] > 0] for f in features[1:]]
        assert np.concatenate(tags).tolist() == [1, 2, 1, 2, 0] * 5

    def test_an_endless_word_is_cut(self, tagger):
        (before, feature, after) = tagger.features([["a", "." * 90, "cat"]])
        assert len(feature.inputs["token_ids"]) == 24
        assert feature.inputs["word_starts"].sum() == 1
        assert [f.inputs["word_starts"].sum() for f in (before, after)] == [1, 1]

    def test_errors_name_the_sentence(self, tagger):
        for wrong in ("a cat", ["a", None], None, 3):
            with pytest.raises(ValueError, match=r"examples\[1\].*(words|string)"):
                tagger.features([["a"], wrong])
        with pytest.raises(ValueError, match=r"labels\[0\].*1 tags.*2 words"):
            tagger.features([["a", "cat"]], [["D"]])
        with pytest.raises(ValueError, match="unknown tag 'X'"):
            tagger.features([["a"]], [["X"]])
        with pytest.raises(ValueError, match="2 for 1"):
            tagger.features([["a"]], [["D"], ["D"]])


class TestPredictions:
    def test_by_hand(self, tagger):
        at_words = []
        for words in SENTENCES:
            (feature,) = tagger.features([words])
            inputs = {k: v[None] for k, v in feature.inputs.items()}
            inputs["padding_mask"] = np.ones_like(inputs["token_ids"])
            hidden = np.array(tagger.encoder(inputs))[0]
            at_words.append(hidden[inputs["word_starts"][0] > 0])
        kernel = np.random.default_rng(0).normal(size=(16, 3))
        bias = -np.concatenate(at_words).mean(axis=0) @ kernel  # all tags are likely
        tagger.head.set_weights([kernel, bias])
        best = [(hidden @ kernel + bias).argmax(axis=1) for hidden in at_words]
        expected = [[TAGS[i] for i in indices] for indices in best]
        assert len({tag for tags in expected for tag in tags}) > 1
        assert tagger.predictions(SENTENCES, batch_size=3) == expected

    def test_each_word_of_any_sentence_has_one_tag(self, tagger):
        rng = np.random.default_rng(0)
        words = ["cat", "the", "\x00", "", "cats.ran,the", "." * 50, "\u4e2d\u6587"]
        sentences = [list(rng.choice(words, n)) for n in (1, 0, 30, 7)]
        sentences = [[str(word) for word in words] for words in sentences]
        assert [len(tags) for tags in tagger.predictions(sentences)] == [1, 0, 30, 7]


class TestLoss:
    @pytest.mark.parametrize("batch_size", [3, 7])
    def test_mean_over_the_words_of_the_batch(self, tagger, batch_size):
        sentences = [["The", "cats", "ran"], ["a"], ["dogs", "sat"]]
        tags = [["D", "N", "V"], ["D"], ["N", "V"]]
        features = tagger.features(sentences, tags)
        ((x, y, w),) = tagger.batches(features, batch_size)
        outputs = {k: np.array(v) for k, v in tagger(x).items()}
        losses = []
        for row, sentence_tags in enumerate(tags):
            at = np.flatnonzero(x["word_starts"][row])
            for position, tag in zip(at, sentence_tags, strict=True):
                e = np.exp(outputs["logits"][row, position])
                losses.append(-np.log(e[TAGS.index(tag)] / e.sum()))
        assert len(losses) == 6
        loss = tagger.compute_loss(x, y, outputs, w)
        assert float(loss) == pytest.approx(np.mean(losses), rel=1e-5)
        by_sequence = [np.mean(losses[:3]), losses[3], np.mean(losses[4:])]
        found = np.array(tagger.sequence_losses(outputs, y))[:3]
        np.testing.assert_allclose(found, by_sequence, rtol=1e-5)

    def test_a_batch_without_words_has_loss_zero(self, tagger):
        features = tagger.features([[], []], [[], []])
        ((x, y, w),) = tagger.batches(features, 2)
        assert float(tagger.compute_loss(x, y, tagger(x), w)) == 0.0

    @pytest.mark.usefixtures("graphs")
    def test_fit_learns(self, tagger):
        sentences = [["the", "cats", "ran"], ["a", "slow", "dog", "sat"]] * 8
        tags = [["D", "N", "V"], ["D", "D", "N", "V"]] * 8
        tagger.compile(keras.optimizers.Adam(1e-2))
        features = tagger.features(sentences, tags)
        tagger.fit(tagger.batches(features, 8, seed=0), epochs=8, verbose=0)
        assert tagger.predictions(sentences) == tags


def test_preset_round_trip(tmp_path, tagger):
    tagger.save_to_preset(tmp_path / "p")
    loaded = TokenTagger.from_preset(tmp_path / "p")
    assert loaded.labels == TAGS
    assert loaded.predictions(SENTENCES) == tagger.predictions(SENTENCES)
    outputs = [m.outputs(m.features(SENTENCES)) for m in (tagger, loaded)]
    for ours, theirs in zip(*outputs, strict=True):
        np.testing.assert_array_equal(ours["logits"], theirs["logits"])
    other = TokenTagger.from_preset(tmp_path / "p", labels=["N", "V", "X"])
    assert not np.array_equal(other.head.get_weights()[0], tagger.head.get_weights()[0])


@pytest.mark.parametrize("labels", [[], ["N", "N"], None])
def test_wrong_labels(tokenizer, labels):
    with pytest.raises(ValueError, match="different names"):
        TokenTagger(ENCODER, tokenizer, labels=labels)
