import hashlib
import json
import subprocess
import sys
import unicodedata

import numpy as np
import pytest

from keras_corrupt.data.corpus import open_corpus
from keras_corrupt.tokenizers.vocabulary import even_sample
from keras_corrupt.tokenizers.wordpiece import SPECIAL_TOKENS, WordPieceTokenizer

WORDS = ["the", "cat", "##s", "!", "cafe", "café", "mask", "[", "]", "語", "言", "語言"]


def tokenizer(words=WORDS, **flags):
    return WordPieceTokenizer([*SPECIAL_TOKENS, *words], **flags)


@pytest.fixture(scope="module")
def lines():
    source = open_corpus("python-docs")[0].lines()
    return [line for _, (_, line) in zip(range(3000), source, strict=False)]


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
    assert (scrambled.mask_id, scrambled.sep_id, scrambled.pad_id) == (1, 2, 3)
    assert (scrambled.cls_id, scrambled.unk_id) == (4, 5)
    assert scrambled.special_ids == (1, 2, 3, 4, 5)
    assert scrambled.encode("x y") == [0, 5]
    assert scrambled.pack([""], 4)["token_ids"].tolist() == [[4, 2]]


def test_training_covers_its_text(lines):
    trained = WordPieceTokenizer.train(lines, 2000)
    assert trained.vocabulary_size == 2000
    assert trained.vocabulary[:5] == list(SPECIAL_TOKENS)
    ids = trained.encode_batch(lines)
    assert not any(trained.unk_id in line for line in ids)
    # Frequent English words are whole.
    assert {"the", "of", "is"} <= set(trained.vocabulary)
    tokens = sum(map(len, ids))
    assert tokens < 2.0 * sum(len(line.split()) for line in lines)
    with pytest.raises(ValueError, match="vocabulary_size=20 has no room.*at least"):
        WordPieceTokenizer.train(lines, 20)
    with pytest.raises(ValueError, match="no text"):
        WordPieceTokenizer.train(["", " "], 200)


def test_training_is_reproducible_across_processes(lines, tmp_path):
    (tmp_path / "lines.json").write_text(json.dumps(lines))
    script = (
        "import json, sys; from keras_corrupt.tokenizers.wordpiece import *; "
        "lines = json.load(open(sys.argv[1])); "
        "print(WordPieceTokenizer.train(lines, 2000).fingerprint)"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "lines.json")]
    output = {subprocess.check_output(command, text=True).strip() for _ in range(2)}
    assert output == {WordPieceTokenizer.train(lines, 2000).fingerprint}


def test_even_sample_is_bounded_and_spread():
    lines = [f"{number:09d}" for number in range(10_000)]
    kept = even_sample(iter(lines), 9_000)
    assert 4_500 <= 9 * len(kept) <= 9_000
    steps = {int(b) - int(a) for a, b in zip(kept, kept[1:], strict=False)}
    assert steps == {16}
    assert even_sample(lines, 10**9) == lines


def test_save_and_load(tmp_path):
    saved = tokenizer(lowercase=False, language_neutral=True)
    saved.save(tmp_path)
    loaded = WordPieceTokenizer.load(tmp_path)
    assert loaded.fingerprint == saved.fingerprint != tokenizer().fingerprint
    assert loaded.vocabulary == saved.vocabulary
    assert loaded.flags == saved.flags
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("tokenizer.json", "vocab.txt"),
    ]
    written = (tmp_path / "vocab.txt").read_text().encode()
    assert written.decode().split("\n")[:-1] == saved.vocabulary
    recorded = json.loads((tmp_path / "tokenizer.json").read_text())
    digest = hashlib.sha256("\n".join(saved.vocabulary).encode()).hexdigest()
    assert recorded["vocabulary_sha256"] == digest


def test_load_rejects_a_changed_vocabulary(tmp_path):
    tokenizer().save(tmp_path)
    path = tmp_path / "vocab.txt"
    path.write_text(path.read_text().replace("cat\n", "dog\n"))
    with pytest.raises(ValueError, match="not the vocabulary that"):
        WordPieceTokenizer.load(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        *("", "[]", "{}", "[" * 50_000, '"x"', "{" * 10, " " * 100_000),
        '{"class": "os.system", "lowercase": true}',
        '{"class": "WordPieceTokenizer", "lowercase": "yes", "strip_accents": true, '
        '"language_neutral": false, "vocabulary_sha256": ""}',
    ],
)
def test_load_rejects_malformed_config(tmp_path, content):
    tokenizer().save(tmp_path)
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(ValueError, match=r"not a tokenizer\.json"):
        WordPieceTokenizer.load(tmp_path)


def test_unusable_vocabularies(tmp_path):
    read = WordPieceTokenizer.from_vocabulary_file
    with pytest.raises(ValueError, match="is a directory"):
        read(tmp_path)
    with pytest.raises(ValueError, match="no such vocabulary"):
        read(tmp_path / "vocab.txt")
    path = tmp_path / "vocab.txt"
    path.write_text("[PAD]\n[UNK]\n[CLS]\na\n")
    with pytest.raises(ValueError, match=r"vocab\.txt.*lacks.*\[SEP\], \[MASK\]:"):
        read(path)
    path.write_text("\n".join([*SPECIAL_TOKENS, "a", "a"]))
    with pytest.raises(ValueError, match=r"repeats tokens: \['a'\]"):
        read(path)
    path.write_text("")
    with pytest.raises(ValueError, match="empty"):
        read(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="UTF-8"):
        read(path)
    path.write_text("\r\n".join([*SPECIAL_TOKENS, "a", ""]), newline="")
    assert read(path).vocabulary == [*SPECIAL_TOKENS, "a"]
    with pytest.raises(ValueError, match="no such file"):
        WordPieceTokenizer.load(tmp_path)


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
