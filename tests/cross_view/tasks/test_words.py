from hypothesis import given, settings
from hypothesis import strategies as st

from keras_corrupt.cross_view.tasks.words import (
    JOINED,
    join_words,
    split_joined,
    split_words,
)


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("aÄ1 .,-'’()\u3000\n語\u0301_" + JOINED), max_size=20))
def test_joined_words_are_the_text_they_came_from(text):
    words = split_joined(text)
    assert join_words(words) == " ".join(text.replace(JOINED, "").split())
    assert all(word and not word.isspace() for word in words)


def test_words_with_marks_within_stay_whole():
    text = "Das T-Shirt, 3,5 Euro, l'homme: „gut“."
    assert split_joined(text) == [
        *("Das", "T-Shirt", "￭,", "3,5", "Euro", "￭,", "l'homme", "￭:"),
        *("„", "￭gut", "￭“", "￭."),
    ]


def test_words_of_any_order_are_text():
    assert join_words(["￭,", "Nein", "UNK", "￭!"]) == ", Nein UNK!"
    assert join_words([]) == "" and split_words(" \n") == []
