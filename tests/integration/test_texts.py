"""All that reads texts refuses what is none, and names which: nothing is guessed."""

import functools

import pytest

from keras_corrupt.downstream import (
    CandidateRanker,
    PromptClassifier,
    SpanExtractor,
    TextClassifier,
    TokenTagger,
)
from keras_corrupt.models import Electra, Electric
from keras_corrupt.scoring import (
    conditional_score,
    embed_texts,
    replaced_words,
    score_sentences,
    token_scores,
    word_scores,
)
from keras_corrupt.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer
from tests.cross_view.conftest import make_parser, make_tagger, make_translator

TOKENIZER = WordPieceTokenizer([*SPECIAL_TOKENS, "good", "bad", "a", "cat"])


@functools.cache
def fine_tuned(cls, **arguments):
    return cls.from_preset("tiny", tokenizer=TOKENIZER, **arguments)


def prompts():
    words = {"positive": "good", "negative": "bad"}
    template = "{first} a [MASK]"
    return PromptClassifier.from_preset(
        "tiny", tokenizer=TOKENIZER, template=template, label_words=words
    )


electra = functools.cache(lambda: Electra.from_preset("tiny", tokenizer=TOKENIZER))
electric = functools.cache(lambda: Electric.from_preset("tiny", tokenizer=TOKENIZER))
classifier = functools.partial(fine_tuned, TextClassifier, labels=("0", "1"))

#: What reads texts -> a function of three of them, and what its argument is called.
READERS = {
    "score": (lambda texts: electra().score(texts), "texts"),
    "replaced_words": (lambda texts: [*replaced_words(electra(), texts)], "texts"),
    "embed_texts": (lambda texts: embed_texts(electra(), texts), "texts"),
    "token_scores": (lambda texts: token_scores(electric(), texts), "texts"),
    "score_sentences": (lambda texts: score_sentences(electric(), texts), "texts"),
    "word_scores": (lambda texts: word_scores(electric(), texts), "texts"),
    "contexts": (
        lambda texts: conditional_score(electric(), texts, [*"abc"]),
        "contexts",
    ),
    "texts": (lambda texts: conditional_score(electric(), [*"abc"], texts), "texts"),
    "classifier": (lambda texts: classifier().predictions(texts), "examples"),
    "probabilities": (lambda texts: classifier().probabilities(texts), "examples"),
    "features": (lambda texts: classifier().features(texts, "010"), "examples"),
    "prompts": (lambda texts: prompts().predictions(texts), "examples"),
    "questions": (
        lambda texts: fine_tuned(SpanExtractor).answer(texts, ["a cat"] * 3),
        "questions",
    ),
    "answers' contexts": (
        lambda texts: fine_tuned(SpanExtractor).answer(["a cat"] * 3, texts),
        "contexts",
    ),
    "translator": (lambda texts: make_translator().predictions(texts), "sentences"),
}

#: What reads texts in parts -> a function of three, and what its argument is called.
READERS_OF_PARTS = {
    "score": (lambda pairs: electra().score(pairs), "texts"),
    "score_sentences": (lambda pairs: score_sentences(electric(), pairs), "texts"),
    "classifier": (lambda pairs: classifier().predictions(pairs), "examples"),
    "ranker": (lambda p: fine_tuned(CandidateRanker).predictions(p), "examples"),
    "extractor": (
        lambda pairs: fine_tuned(SpanExtractor).predictions(pairs),
        "examples",
    ),
    "tagger": (
        lambda words: fine_tuned(TokenTagger, labels=("N",)).predictions(words),
        "examples",
    ),
    "cross-view tagger": (lambda words: make_tagger().predictions(words), "sentences"),
    "parser": (lambda words: make_parser().predictions(words), "sentences"),
    "translator": (lambda words: make_translator().predictions(words), "sentences"),
}

NO_TEXTS = {
    "bytes": (b"bad", "is bytes, b'bad'. Decode it"),
    "half a pair": ("a \ud83d cat", r"half a surrogate pair, U\+D83D, at character 2"),
    "none": (None, "got None"),
    "number": (5, "got 5"),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", NO_TEXTS)
def test_what_is_no_text_is_refused(reader, kind):
    (read, argument), (text, message) = READERS[reader], NO_TEXTS[kind]
    with pytest.raises(ValueError, match=rf"`{argument}\[1\]` .*{message}"):
        read(["good", text, "bad"])


@pytest.mark.parametrize("reader", READERS_OF_PARTS)
@pytest.mark.parametrize("kind", NO_TEXTS)
def test_what_is_no_part_is_refused(reader, kind):
    (read, argument), (text, message) = READERS_OF_PARTS[reader], NO_TEXTS[kind]
    whole = "good", "a cat"
    with pytest.raises(ValueError, match=rf"`{argument}\[1\]\[1\]` .*{message}"):
        read([whole, ("good", text), whole])


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("text", ["abc", b"abc"])
def test_one_text_is_no_list(reader, text):
    """Its letters, or the numbers of its bytes, are not three texts."""
    read, argument = READERS[reader]
    with pytest.raises(ValueError, match=rf"`{argument}` must be a list; got"):
        read(text)


def test_bytes_are_no_token_ids():
    """These would be ids of the vocabulary."""
    ids = [5, 6]
    assert score_sentences(electric(), [ids, "good bad"])[0] != 0
    with pytest.raises(ValueError, match=r"`texts\[0\]` is bytes"):
        score_sentences(electric(), [bytes(ids)])
