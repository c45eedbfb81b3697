"""Words of a text as it was typed, with the scores of their pieces."""

import numpy as np
import pytest

from keras_corrupt.models.generator_discriminator import TokenScores
from keras_corrupt.scoring import WordScore, highlight, replaced_words
from keras_corrupt.scoring.words import SORTED_BATCHES
from keras_corrupt.tokenizers import ByteBPETokenizer


class Alphabetical:
    """Says of a token that the later in the vocabulary it is, the likelier replaced."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    def score(self, texts, batch_size):
        for ids in texts:
            probabilities = np.array([9, *ids, 9]) / 100
            yield TokenScores(
                ["[CLS]", *self.tokenizer.tokens(ids), "[SEP]"], probabilities
            )


def test_pieces_are_put_together_and_the_text_stays_as_it_was(tokenizer):
    """`cats` is two pieces: the likelier one counts."""
    number = tokenizer.vocabulary.index
    text = "The  CATS sat, slowly ."
    (words,) = replaced_words(Alphabetical(tokenizer), [text])
    expected = [
        WordScore("The", 0, 3, number("the") / 100),
        WordScore("CATS", 5, 9, max(number("cat"), number("##s")) / 100),
        WordScore("sat", 10, 13, number("sat") / 100),
        WordScore(",", 13, 14, number(",") / 100),
        WordScore("slowly", 15, 21, max(number("slow"), number("##ly")) / 100),
        WordScore(".", 22, 23, number(".") / 100),
    ]
    assert words == expected


def test_every_kind_of_vocabulary_gives_the_words_between_spaces():
    texts = ["the cats sat", "the dogs ran and ran"]
    tokenizer = ByteBPETokenizer.train(texts, 270)
    model = Alphabetical(tokenizer)
    for text, words in zip(texts, replaced_words(model, texts), strict=True):
        assert [word.text for word in words] == text.split()
        assert all(text[word.start : word.end] == word.text for word in words)


def test_texts_come_in_order_and_may_be_empty(tokenizer):
    texts = ["the cat", "", "a dog ran", "   "]
    found = replaced_words(Alphabetical(tokenizer), iter(texts), batch_size=3)
    assert [[word.text for word in words] for words in found] == [
        *(["the", "cat"], []),
        *(["a", "dog", "ran"], []),
    ]


def test_texts_are_read_as_they_come(tokenizer):
    """Only as many are read ahead as are sorted by length together."""
    model, read = Alphabetical(tokenizer), []

    def score(texts, batch_size):
        read.append(len(texts))
        return Alphabetical.score(model, texts, batch_size)

    model.score = score
    texts = ["the cat"] * (SORTED_BATCHES + 1)
    found = replaced_words(model, texts, batch_size=1)
    next(found)
    assert read == [SORTED_BATCHES]
    assert len(list(found)) == SORTED_BATCHES and read == [SORTED_BATCHES, 1]


def test_a_model_without_a_tokenizer_is_refused():
    with pytest.raises(ValueError, match="the model's tokenizer; it has none"):
        next(replaced_words(Alphabetical(None), ["the cat"]))


def test_marks_leave_the_rest_of_the_text_alone():
    text = "A  cat, because\tsat"
    words = [
        *(WordScore("A", 0, 1, 0.24), WordScore("cat", 3, 6, 0.25)),
        *(WordScore(",", 6, 7, 0.6), WordScore("because", 8, 15, 0.99)),
        WordScore("sat", 16, 19, 0.0),
    ]
    assert highlight(text, words) == "A  <cat 0.25><, 0.60> <because 0.99>\tsat"
    colored = highlight(text, words, color=True)
    codes = [f"\x1b[30;48;5;{shade}m" for shade in (229, 220, 208)]
    expected = "A  {}cat\x1b[0m{},\x1b[0m {}because\x1b[0m\tsat"
    assert colored == expected.format(*codes)
