"""No file or word, however large or odd, costs more than bounded time and memory."""

import os
import random
from collections import Counter

import pytest

from keras_corrupt.tokenizers import (
    SPECIAL_TOKENS,
    UnigramTokenizer,
    from_file,
    load,
    unigram,
)
from keras_corrupt.tokenizers.reading import MAX_BYTES
from keras_corrupt.tokenizers.vocabulary import MAX_TOKENS, even_sample
from tests.tokenizers.test_files import word_pieces


def sparse(path):
    with open(path, "wb") as file:
        file.truncate(1 << 40)  # takes no room on the disk


NO_FILES = {
    "pipe": (os.mkfifo, "no file but a pipe"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "no file but a pipe"),
    "nothing": (lambda path: path.symlink_to("nowhere"), "no such vocabulary file"),
    "loop": (lambda path: path.symlink_to(path), "no such vocabulary file"),
    "terabyte": (sparse, f"over {MAX_BYTES:,} bytes"),
}


@pytest.mark.parametrize("kind", NO_FILES)
@pytest.mark.parametrize("name", ["vocab.txt", "tokenizer.json", "unigram.model"])
def test_what_is_no_vocabulary_file(kind, name, tmp_path):
    make, message = NO_FILES[kind]
    make(tmp_path / name)
    with pytest.raises(ValueError, match=rf"{name}.*{message}"):
        from_file(tmp_path / name)


@pytest.mark.parametrize("kind", NO_FILES)
@pytest.mark.parametrize("name", ["vocab.txt", "tokenizer_settings.json"])
def test_saved_files_that_are_none(kind, name, tmp_path):
    word_pieces().save(tmp_path)
    (tmp_path / name).unlink()
    NO_FILES[kind][0](tmp_path / name)
    with pytest.raises(ValueError, match=r"(vocab\.txt|tokenizer\w*\.json): \w+"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("vocab.txt", b"a\n" * 10**7, f"over {MAX_TOKENS:,} tokens"),
        ("unigram.model", b"\x0a\x00" * 10**7, f"{MAX_TOKENS:,} pieces or more"),
        ("vocab.txt", "\n".join(SPECIAL_TOKENS).encode(), "special tokens only"),
    ],
)
def test_sizes_of_vocabulary_files(name, content, message, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"{name}.*{message}"):
        from_file(tmp_path / name)


def test_training_sees_no_endless_words():
    usual = ["word " * 5000, "x" * 1000, "", "  ", "x" * 999 + " " + "y" * 999]
    assert even_sample(usual, 10**9) == usual
    for endless in ("x" * 2500, "a b " + "語" * 1001, "a" + " " * 1001 + "b"):
        pieces = even_sample(["a b", endless], 10**9)
        assert pieces[0] == "a b" and "".join(pieces[1:]) == endless
        assert max(map(len, pieces)) <= 1000


def test_training_of_pieces_sees_few_words_that_all_differ(monkeypatch):
    """The library takes hours for much text without spaces."""
    seen = []

    class Trained(Exception):
        pass

    def train(engine, lines, trainer):
        seen.extend(lines)
        raise Trained

    monkeypatch.setattr(unigram, "_LONG_WORDS_SIZE", 3000)
    monkeypatch.setattr(unigram.tokenizers.Tokenizer, "train_from_iterator", train)
    rng = random.Random(0)
    endless = ["".join(rng.choices("acdefghik", k=100)) for _ in range(100)]
    lines = [f"the cat {word} sat" for word in endless]
    with pytest.raises(Trained):
        UnigramTokenizer.train(lines, 500)
    counts = Counter(" ".join(seen).split(" "))
    assert {counts.pop(word) for word in ("the", "cat", "sat")} == {100}
    # 25 words are 2,500 letters; each stands for 4.
    assert counts == dict.fromkeys(endless[::4], 4)


def test_letters_of_words_that_are_left_out_are_known(monkeypatch):
    monkeypatch.setattr(unigram, "_LONG_WORDS_SIZE", 300)
    rng = random.Random(0)
    lines = ["".join(rng.choices("abcde", k=100)) for _ in range(40)]
    lines[1] += "xyz"
    tokenizer = UnigramTokenizer.train(lines, 200)
    for text in (*lines, "zyx"):
        assert tokenizer.unknown_id not in tokenizer.encode(text)
