import unicodedata

import numpy as np
import pytest

from keras_corrupt.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer
from keras_corrupt.tokenizers.vocabulary import even_sample

WORDS = ["the", "cat", "##s", "!", "cafe", "café", "mask", "[", "]", "語", "言", "語言"]


def tokenizer(words=WORDS, **flags):
    return WordPieceTokenizer([*SPECIAL_TOKENS, *words], **flags)


def test_encodes_greedily_longest_pieces_first():
    assert tokenizer().tokens(tokenizer().encode("The cats! dog")) == [
        *("the", "cat", "##s", "!", "[UNK]"),
    ]


def test_special_tokens_in_text_are_text():
    assert tokenizer().tokens(tokenizer().encode("[MASK]")) == ["[", "mask", "]"]


@pytest.mark.parametrize(
    ("flags", "text", "tokens"),
    [
        ({}, "CAFÉ", ["cafe"]),
        ({"strip_accents": False}, "CAFÉ", ["café"]),
        ({"strip_accents": False}, "cafe\u0301", ["[UNK]"]),
        ({"strip_accents": False, "language_neutral": True}, "cafe\u0301", ["café"]),
        ({"lowercase": False}, "The cat", ["[UNK]", "cat"]),
        ({}, "語言", ["語", "言"]),
        ({"language_neutral": True}, "語言", ["語言"]),
        ({"language_neutral": True}, "ｃａｔ", ["cat"]),
        ({}, "ca\u0000t\u00a0the", ["cat", "the"]),
    ],
)
def test_normalisation_flags(flags, text, tokens):
    assert tokenizer(**flags).tokens(tokenizer(**flags).encode(text)) == tokens


def test_agrees_with_tensorflow_text_bert_tokenizer(lines):
    text = pytest.importorskip("tensorflow_text")
    tf = pytest.importorskip("tensorflow")
    ours = WordPieceTokenizer.train(lines, 1500)
    table = tf.lookup.StaticVocabularyTable(
        tf.lookup.KeyValueTensorInitializer(
            ours.vocabulary, list(range(ours.vocabulary_size)), tf.string, tf.int64
        ),
        1,
    )
    # That library folds compatibility characters (… to ...), which BERT does not.
    same = [
        line
        for line in lines
        if unicodedata.normalize("NFKC", line).casefold() == line.lower()
    ]
    assert len(same) > 2900
    other = text.BertTokenizer(table, lower_case=True)
    expected = other.tokenize(same).merge_dims(1, 2).to_list()
    assert ours.encode_batch(same) == expected


def test_accents_are_what_bert_strips():
    """`_run_strip_accents` of BERT's tokenization.py, in Python's own terms."""
    words = "Café cafe\u0301 naïve ắn कि कु हिन्दी ที่ กิน שָׁלוֹם مُحَمَّد が".split()
    tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, "a"])
    for word in words:
        decomposed = unicodedata.normalize("NFD", word.lower())
        kept = [c for c in decomposed if unicodedata.category(c) != "Mn"]
        assert tokenizer.engine.normalizer.normalize_str(word) == "".join(kept)


def test_words_of_more_than_100_characters_are_unknown():
    letters = WordPieceTokenizer([*SPECIAL_TOKENS, "x", "##x"])
    assert letters.tokens(letters.encode("x" * 100)) == ["x", *["##x"] * 99]
    assert letters.tokens(letters.encode("x" * 101)) == ["[UNK]"]


def test_decode_joins_pieces():
    assert tokenizer().decode(tokenizer().encode("the cats !")) == "the cats !"


def test_pack_texts_and_pairs():
    packed = tokenizer().pack(["the cat", ("cats", "the")], max_length=8)
    pad, _, cls, sep, _ = range(5)
    the, cat, s = 5, 6, 7
    np.testing.assert_array_equal(
        packed["token_ids"],
        [[cls, the, cat, sep, pad, pad], [cls, cat, s, sep, the, sep]],
    )
    np.testing.assert_array_equal(
        packed["segment_ids"], [[0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1]]
    )
    np.testing.assert_array_equal(
        packed["padding_mask"], [[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]]
    )
    assert {array.dtype for array in packed.values()} == {np.dtype("int32")}


def test_pack_cuts_nothing():
    with pytest.raises(ValueError, match=r"texts\[1\] has 5 tokens.*max_length=4"):
        tokenizer().pack(["the", "the the the"], max_length=4)


def test_ids_follow_the_vocabulary_order():
    scrambled = WordPieceTokenizer(["x", "[MASK]", "[SEP]", "[PAD]", "[CLS]", "[UNK]"])
    assert (scrambled.mask_id, scrambled.separate_id, scrambled.padding_id) == (1, 2, 3)
    assert (scrambled.classify_id, scrambled.unknown_id) == (4, 5)
    assert scrambled.special_ids == (1, 2, 3, 4, 5)
    assert scrambled.encode("x y") == [0, 5]
    assert scrambled.pack([""], 4)["token_ids"].tolist() == [[4, 2]]


def test_training_covers_its_text(lines):
    trained = WordPieceTokenizer.train(lines, 2000)
    assert trained.vocabulary_size == 2000
    assert trained.vocabulary[:5] == list(SPECIAL_TOKENS)
    ids = trained.encode_batch(lines)
    assert not any(trained.unknown_id in line for line in ids)
    # Frequent English words are whole.
    assert {"the", "of", "is"} <= set(trained.vocabulary)
    tokens = sum(map(len, ids))
    assert tokens < 2.0 * sum(len(line.split()) for line in lines)
    with pytest.raises(ValueError, match="vocabulary_size=20 has no room.*at least"):
        WordPieceTokenizer.train(lines, 20)
    with pytest.raises(ValueError, match="no text"):
        WordPieceTokenizer.train(["", " "], 200)


def test_even_sample_is_bounded_and_spread():
    lines = [f"{number:09d}" for number in range(10_000)]
    kept = even_sample(iter(lines), 9_000)
    assert 4_500 <= 9 * len(kept) <= 9_000
    steps = {int(b) - int(a) for a, b in zip(kept, kept[1:], strict=False)}
    assert steps == {16}
    assert even_sample(lines, 10**9) == lines


@pytest.mark.parametrize(
    ("flags", "text", "spans"),
    [
        ({}, "The  CATS!", ["The", "CAT", "S", "!"]),
        ({}, "\u0000 cafe\u0301s, 😀cat", ["cafe\u0301", "s", ",", "😀cat"]),
        ({}, "語言", ["語", "言"]),
        ({"language_neutral": True}, "ﬀ 語言", ["ﬀ", "語言"]),
        ({}, " \t", []),
        ({}, "\u0301", []),
    ],
)
def test_offsets(flags, text, spans):
    [(ids, offsets)] = tokenizer(**flags).encode_with_offsets([text])
    assert ids.tolist() == tokenizer(**flags).encode(text)
    assert [text[start:end] for start, end in offsets] == spans


def test_offsets_spell_the_tokens(lines):
    trained = WordPieceTokenizer.train(lines, 1500)
    texts = [line for line in lines if line.isascii()]
    encoded = list(trained.encode_with_offsets(texts))
    assert [ids.tolist() for ids, _ in encoded] == trained.encode_batch(texts)
    for text, (ids, offsets) in zip(texts, encoded, strict=True):
        spelled = [text[start:end].lower() for start, end in offsets]
        assert spelled == [t.removeprefix("##") for t in trained.tokens(ids)]
        assert (offsets[1:, 0] >= offsets[:-1, 1]).all()
