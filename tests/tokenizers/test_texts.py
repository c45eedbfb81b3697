"""A text is a string of whole characters; what is none is named, never guessed."""

import pytest

from keras_corrupt.tokenizers import KINDS, WordPieceTokenizer

NO_TEXTS = [
    (b"a cat", r"bytes, b'a cat'. Decode it: text.decode\(\"utf-8\"\)"),
    ("ab\ud83d", r"half a surrogate pair, U\+D83D, at character 2"),
    (None, "a string; got None"),
    ([5, 6], r"a string; got \[5, 6\]"),
    (7, "a string; got 7"),
]


@pytest.mark.parametrize(("text", "message"), NO_TEXTS)
def test_what_is_no_text(any_kind, text, message):
    with pytest.raises(ValueError, match=f"`text` .*{message}"):
        any_kind.encode(text)
    texts = ["a cat", "", text]
    with pytest.raises(ValueError, match=rf"`texts\[2\]` .*{message}"):
        any_kind.encode_batch(texts)
    with pytest.raises(ValueError, match=rf"`texts\[2\]` .*{message}"):
        list(any_kind.encode_with_offsets(texts))
    with pytest.raises(ValueError, match=rf"`texts\[2\]\[1\]` .*{message}"):
        any_kind.pack(["a", "b", ("a", text)], 8)


@pytest.mark.parametrize(("text", "message"), NO_TEXTS)
def test_vocabularies_are_trained_on_texts(text, message):
    for kind in KINDS.values():
        with pytest.raises(ValueError, match=rf"`lines\[1\]` .*{message}"):
            kind.train(["a cat", text], 300)


@pytest.mark.parametrize("text", ["a cat", b"a cat", None])
def test_one_text_is_no_list(any_kind, text):
    for encode in (any_kind.encode_batch, lambda texts: any_kind.pack(texts, 8)):
        with pytest.raises(ValueError, match="`texts` must be a list; got"):
            encode(text)


def test_a_long_batch_is_checked_too(trained):
    """It goes through another library, which takes bytes."""
    tokenizer = WordPieceTokenizer(trained["wordpiece"].vocabulary)
    tokenizer.expect(10**9)
    texts = ["a cat sat on the mat " * 10] * 100
    assert tokenizer.encode_batch(texts)[0] == tokenizer.encode(texts[0])
    for text, message in NO_TEXTS:
        with pytest.raises(ValueError, match=rf"`texts\[100\]` .*{message}"):
            tokenizer.encode_batch([*texts, text])
