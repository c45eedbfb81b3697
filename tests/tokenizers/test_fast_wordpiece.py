"""TensorFlow Text's word pieces: fast, and never others."""

import copy
import itertools
import pickle
import random

import pytest

from keras_corrupt.data import prepare_dataset
from keras_corrupt.devices import accelerators
from keras_corrupt.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer, wordpiece
from keras_corrupt.tokenizers.tokenizer import Tokenizer

pytest.importorskip("tensorflow_text")

FLAGS = list(itertools.product((False, True), repeat=3))
#: What normalisation, splitting or a word's length stumbles over.
ODD = [
    *("…½ßςªﬁ²", "ΟΔΥΣΣΕΑΣ", "ΟΔΥΣ.", "e\u0301e\u0301\u0323", "İstanbul", "Łódź"),
    *("한국어 \u1112\u1161\u11ab", "語言", "ह\u093fन\u094dद\u0940", "ab\u00adc\u200bd"),
    *("[UNK] [MASK] ##a #a", "a\x00b\x01c\x7fd\te\u2028f", "\ue000\U000f0000\u0378"),
    *("д" * 60, "д" * 100, "д" * 101, "a" * 100, "a" * 101, "", " "),
]


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    for name in ("_START", "_START_ALONE", "_CALL"):
        monkeypatch.setattr(wordpiece, name, 0)


def slow(tokenizer, texts):
    return Tokenizer.encode_batch(tokenizer, texts)


def tokenizer_of(letters, flags):
    """One that cuts words of these letters into pieces of one or two."""
    pairs = [a + b for a, b in itertools.pairwise(letters)]
    pieces = [*letters, *pairs, *(f"##{piece}" for piece in [*letters, *pairs])]
    return WordPieceTokenizer(list(dict.fromkeys([*SPECIAL_TOKENS, *pieces])), *flags)


# Half of the flags' combinations have all pairs of two flags.
@pytest.mark.parametrize("flags", [f for f in FLAGS if sum(f) % 2 == 0], ids=str)
def test_gives_the_same_ids_for_all_of_unicode(flags):
    rng = random.Random(str(flags))
    scripts = range(0x3000), range(0xD800), range(0xE000, 0x20000)
    letters = [*map(chr, range(33, 127))]
    letters += [chr(rng.choice(rng.choice(scripts))) for _ in range(300)]
    probe = tokenizer_of(letters, flags)
    images = [probe.engine.normalizer.normalize_str(letter) for letter in letters]
    letters += sorted(set("".join(images)) - {" ", *letters})
    tokenizer = tokenizer_of(letters, flags)
    # Words that both cut, and any letters at all, with marks and spaces among them.
    agreed = [x for x in letters if tokenizer._fast._characters.agree([x])[0]]
    texts = [
        "".join(rng.choices([*some, " "], k=rng.randint(1, 30)))
        for some in (agreed, letters, [*letters, "\u0301", "\u1161", "\u3099", "Σ"])
        for _ in range(400)
    ]
    assert len(agreed) > 90
    assert tokenizer.encode_batch(texts) == slow(tokenizer, texts)
    *_, done = tokenizer._fast.encode_flat(texts)
    assert done.sum() > 25


@pytest.mark.parametrize("flags", FLAGS, ids=str)
def test_odd_texts(flags):
    tokenizer = tokenizer_of([*"abcdefgднσς語한…½ß", "e\u0301"], flags)
    for text in ODD:
        assert tokenizer.encode_batch([text, "a"]) == slow(tokenizer, [text, "a"])


def test_real_text_takes_the_fast_way(lines):
    tokenizer = WordPieceTokenizer.train(lines, 1500)
    *_, done = tokenizer._fast.encode_flat(lines)
    assert done.mean() > 0.95
    assert tokenizer.encode_batch(lines) == slow(tokenizer, lines)


def test_tokens_that_no_text_has_are_left_out():
    words = ["a", "##a", ".", "##.", "\x11", "#", "##", "a b", "##語", "語", "a.b"]
    tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, *words])
    texts = ["a.", "aa . a", "語a", "a b", "a.b", "\x11."]
    assert tokenizer._fast.encode_flat(["aa ."])[0].tolist() == [5, 6, 7]
    assert tokenizer.encode_batch(texts) == slow(tokenizer, texts)


def test_starts_only_when_it_is_worth_it(monkeypatch):
    monkeypatch.setattr(wordpiece, "_START", 10)
    tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, "a"])
    assert tokenizer.encode_batch(["a a a"]) == [[5, 5, 5]]
    assert "_fast" not in vars(tokenizer)
    assert tokenizer.encode_batch(["a a a"]) == [[5, 5, 5]]
    assert "_fast" in vars(tokenizer)


def test_tensorflow_leaves_the_gpu_to_jax(monkeypatch):
    called = []
    monkeypatch.setattr(accelerators, "leave_to_jax", lambda: called.append(True))
    WordPieceTokenizer([*SPECIAL_TOKENS, "a"]).encode("a")
    assert called


def test_copies_and_pickles():
    tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, "a"])
    assert tokenizer.encode("a") == [5]
    for other in copy.deepcopy(tokenizer), pickle.loads(pickle.dumps(tokenizer)):
        assert other.encode("a a") == [5, 5]


def test_does_without_the_library(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(wordpiece, "missing_text_library", lambda: "it is not here")
    tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, "a"])
    assert tokenizer.encode("a") == [5]
    assert tokenizer._fast is None
    corpus = tmp_path / "text.txt"
    corpus.write_text("a b\n\nc d\n\na c\n\n" * 40)
    options = {"validation_fraction": 0.2, "vocabulary_size": 30, "workers": 1}
    prepare_dataset(str(corpus), tmp_path / "data", **options)
    assert capsys.readouterr().err.count("it is not here") == 1


def test_examples_are_the_same_byte_for_byte(monkeypatch, tmp_path, lines):
    corpus = tmp_path / "text.txt"
    corpus.write_text("\n\n".join([*lines, *ODD]), encoding="utf-8")
    options = {"vocabulary_size": 1500, "workers": 1, "validation_fraction": 0.1}
    prepare_dataset(str(corpus), tmp_path / "fast", **options)
    monkeypatch.setattr(wordpiece, "missing_text_library", lambda: "off")
    prepare_dataset(str(corpus), tmp_path / "slow", **options)
    files = sorted(path.name for path in (tmp_path / "fast").glob("*.tfrecord"))
    assert len(files) == 2
    for name in [*files, "vocab.txt", "unigrams.npy"]:
        ways = [(tmp_path / way / name).read_bytes() for way in ("fast", "slow")]
        assert ways[0] == ways[1]
