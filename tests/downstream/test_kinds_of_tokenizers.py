"""Fine-tuning on byte-level BPE and unigram vocabularies."""

import numpy as np
import pytest

from keras_corrupt.convert.saved_model import export_saved_model
from keras_corrupt.downstream.candidate_ranker import CandidateRanker
from keras_corrupt.downstream.span_extractor import SpanExtractor
from keras_corrupt.downstream.text_classifier import TextClassifier
from keras_corrupt.downstream.token_tagger import TokenTagger
from keras_corrupt.models import Electra
from keras_corrupt.presets import load_preset
from keras_corrupt.tokenizers import KINDS
from tests.conftest import SIZES
from tests.downstream.conftest import ENCODER

TEXT = "the cats sat on the mat, but a dog (slowly) ran under the cups. it is his."
CONTEXT = "The  cats sat\ton the mat; (slowly),  a café. 語言 ran"


@pytest.fixture(scope="module", params=["byte_bpe", "unigram"])
def tokenizer(request):
    words = TEXT.split()
    lines = [TEXT, *(" ".join(words[i:]) for i in range(len(words)))]
    return KINDS[request.param].train(lines, 320)


@pytest.fixture
def encoder(tokenizer):
    return ENCODER | {"vocabulary_size": tokenizer.vocabulary_size, "max_length": 48}


def decoded(model, feature):
    return model.tokenizer.decode(feature.inputs["token_ids"].tolist())


def test_text_classifier(encoder, tokenizer, tmp_path):
    model = TextClassifier(encoder, tokenizer, labels=["a", "b"])
    examples = ["the cats sat", ("a dog", "ran under the cups.")]
    single, pair = model.features(examples)
    assert decoded(model, single) == "[CLS] the cats sat [SEP]"
    assert decoded(model, pair) == "[CLS] a dog [SEP] ran under the cups. [SEP]"
    assert set(model.predictions(examples)) <= {"a", "b"}
    model.save_to_preset(tmp_path / "preset")
    loaded = load_preset(tmp_path / "preset")
    assert loaded.tokenizer.fingerprint == tokenizer.fingerprint
    np.testing.assert_allclose(
        loaded.probabilities(examples), model.probabilities(examples), atol=1e-6
    )


def test_token_tagger(encoder, tokenizer):
    """A word in a sentence is encoded as within the sentence."""
    model = TokenTagger(encoder, tokenizer, labels=["N", "V"])
    words = ["the", "cats", "sat", "\u200b", "cups."]
    [feature] = model.features([words])
    ids = feature.inputs["token_ids"]
    starts = np.flatnonzero(feature.inputs["word_starts"])
    pieces = [part.tolist() for part in np.split(ids[:-1], starts)[1:]]
    # Byte-level BPE has tokens for what is nothing to the others.
    assert pieces[3] == [tokenizer.unknown_id] or tokenizer.kind == "byte_bpe"
    del pieces[3]
    assert sum(pieces, []) == tokenizer.encode("the cats sat cups.")
    assert [tokenizer.decode(part) for part in pieces] == [*words[:3], words[4]]
    tags = model.predictions([words, ["cats"]])
    assert [len(sentence) for sentence in tags] == [5, 1]


@pytest.mark.parametrize(
    "answer",
    ["The", "cats", "The  cats", "sat\ton", "mat", "slowly", "café", "語言 ran"],
)
def test_answers_are_cut_exactly(encoder, tokenizer, answer):
    model = SpanExtractor(encoder, tokenizer, stride=8)
    start = CONTEXT.index(answer)
    windows = model.features([("who sat?", CONTEXT)], [[(answer, start)]])
    answered = 0
    for window in windows:
        ids, offsets = window.inputs["token_ids"], window.offsets
        context = int(np.flatnonzero(window.inputs["segment_ids"])[0])
        selectable = window.inputs["selectable"][context:-1].astype(bool)
        for first, last in offsets[selectable]:
            assert first < last and CONTEXT[first:last] == CONTEXT[first:last].strip()
        assert len(selectable) == len(offsets) == len(ids) - context - 1
        if not window.targets["unanswerable"]:
            first, last = (window.targets[key] - context for key in ("start", "end"))
            assert selectable[[first, last]].all()
            assert CONTEXT[offsets[first, 0] : offsets[last, 1]] == answer
            answered += 1
    assert answered


def test_predicted_answers_have_no_space_around(encoder, tokenizer):
    model = SpanExtractor(encoder, tokenizer)
    [answer] = model.predictions([("who?", CONTEXT)])
    for text, start, _ in answer.candidates:
        assert text == text.strip() == CONTEXT[start : start + len(text)]
    with pytest.raises(ValueError, match="without any text"):
        model.features([("who?", "   \t")])


def test_candidates_stand_in_their_sentence(encoder, tokenizer):
    model = CandidateRanker(encoder | {"max_length": 96}, tokenizer)
    text = "The cats sat under the cups because it is slowly ran."
    feature = model.features([(text, "The cups is slowly ran.")])[0]
    placed = text.replace("it", "The cups")
    ids = feature.inputs["token_ids"]
    assert ids[1:-1].tolist() == tokenizer.encode(placed)
    candidate = ids[feature.inputs["candidate"] == 1]
    assert tokenizer.decode(candidate.tolist()) == "the cups"


def test_scores_of_tokens(tokenizer):
    size = SIZES["discriminator"] | {"vocabulary_size": tokenizer.vocabulary_size}
    model = Electra(size, SIZES["generator"], tokenizer=tokenizer)
    assert model.mask_id == tokenizer.mask_id
    assert model.unmaskable_ids == (0, 2, 3)
    [scores] = model.score(["the cats sat"])
    ids = [2, *tokenizer.encode("the cats sat"), 3]
    assert scores.tokens == tokenizer.tokens(ids)


def test_export_is_refused(encoder, tokenizer, tmp_path):
    model = TextClassifier(encoder, tokenizer, labels=["a", "b"])
    with pytest.raises(ValueError, match=f"word pieces.*{tokenizer.kind!r}"):
        export_saved_model(model, tmp_path / "saved")
    assert not list(tmp_path.iterdir())
