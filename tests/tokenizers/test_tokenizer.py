"""What is true of every kind of tokenizer."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import tokenizers

from keras_corrupt.tokenizers import KINDS, SPECIAL_TOKENS
from tests.tokenizers.conftest import ODD


def test_roles(any_kind):
    """Training gives all kinds the same special tokens, at the same ids."""
    assert any_kind.vocabulary[:5] == list(SPECIAL_TOKENS)
    assert any_kind.special_ids == (0, 1, 2, 3, 4)
    assert any_kind.role_ids == {
        **{"padding": 0, "unknown": 1, "classify": 2, "separate": 3, "mask": 4}
    }
    assert (any_kind.padding_id, any_kind.unknown_id, any_kind.mask_id) == (0, 1, 4)
    assert (any_kind.classify_id, any_kind.separate_id) == (2, 3)
    assert any_kind.vocabulary_size == len(any_kind.vocabulary) == 1000


def test_special_tokens_in_text_are_text(any_kind):
    for token in SPECIAL_TOKENS:
        for text in (token, f"a{token}", f"{token}{token} b"):
            found = set(any_kind.encode(text)) & set(any_kind.special_ids)
            assert found <= {any_kind.unknown_id}
            assert any_kind.encode("[MASK]") != [any_kind.unknown_id]


def test_the_same_lines_give_the_same_vocabulary(trained, lines, tmp_path):
    """In other processes, whose hash tables are seeded otherwise, and on one thread."""
    (tmp_path / "lines.json").write_text(json.dumps(lines))
    script = (
        "import json, sys; from keras_corrupt.tokenizers import KINDS; "
        "lines = json.load(open(sys.argv[1])); "
        "[print(cls.train(lines, 1000, False, False).fingerprint)"
        " for cls in KINDS.values()]"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "lines.json")]
    expected = [tokenizer.fingerprint for tokenizer in trained.values()]
    for parallel in ("true", "false"):
        environment = os.environ | {"TOKENIZERS_PARALLELISM": parallel}
        output = subprocess.check_output(command, text=True, env=environment)
        assert output.split() == expected


@pytest.mark.parametrize("kind", KINDS)
def test_training_needs_text_and_room(kind, lines):
    train = KINDS[kind].train
    with pytest.raises(ValueError, match="vocabulary_size=20 has no room.*at least"):
        train(lines, 20)
    with pytest.raises(ValueError, match="no text"):
        train(["", " "], 500)
    small = train(["a cat", "a dog"], 500)
    assert small.decode(small.encode("A cat")) == "a cat"


@pytest.mark.parametrize("kind", KINDS)
def test_flags(kind, lines):
    def same(a, b, **flags):
        trained = KINDS[kind].train(
            ["the cafe e\u0301É Éé", "Cafe the"] * 9, 400, **flags
        )
        assert {**trained.flags, **flags} == trained.flags
        return trained.encode(a) == trained.encode(b)

    for lowercase in (False, True):
        for strip in (False, True):
            flags = {"lowercase": lowercase, "strip_accents": strip}
            assert same("CAFE", "cafe", **flags) is lowercase
            assert same("é", "e", **flags) is strip


def test_decoding_gives_the_text_back(any_kind, lines):
    """But for spaces, and what WordPiece and the unigram model normalise."""
    texts = [line for line in lines if line.isascii()][:500]
    decoded = [any_kind.decode(ids) for ids in any_kind.encode_batch(texts)]
    exact = any_kind.kind == "byte_bpe"
    for text, again in zip(texts, decoded, strict=True):
        wanted = text.strip() if exact else "".join(text.split())
        assert (again if exact else "".join(again.split())) == wanted


def test_decode_writes_descriptions_and_special_tokens(any_kind):
    ids = any_kind.encode("the value of x")
    ids = [any_kind.classify_id, *ids, any_kind.separate_id]
    assert any_kind.decode(ids) == "[CLS] the value of x [SEP]"
    place = any_kind.tokens(ids).index(any_kind.tokens(any_kind.encode("of"))[0])
    described = any_kind.decode(ids, {place: "[of: in]", 0: "<>"})
    assert described == "<> the value [of: in] x [SEP]"


def test_offsets_spell_the_tokens(any_kind, lines):
    marks = "##", "Ġ", "▁"
    texts = [line for line in lines if line.isascii()][:1000]
    encoded = list(any_kind.encode_with_offsets(texts))
    assert [ids.tolist() for ids, _ in encoded] == any_kind.encode_batch(texts)
    for text, (ids, offsets) in zip(texts, encoded, strict=True):
        for token, (start, end) in zip(any_kind.tokens(ids), offsets, strict=True):
            for mark in marks:
                token = token.removeprefix(mark) if token != "#" else token
            # A space that stands before the text has the first character.
            assert text[start:end] == token or (not token and start == 0)
            assert not text[start:end][:1].isspace()


@pytest.mark.parametrize("text", ODD)
def test_offsets_of_odd_texts(any_kind, text):
    [(ids, offsets)] = any_kind.encode_with_offsets([text])
    assert ids.tolist() == any_kind.encode(text)
    assert offsets.dtype == np.int32 and offsets.shape == (len(ids), 2)
    assert (offsets[:, 0] <= offsets[:, 1]).all() and (
        np.diff(offsets[:, 0]) >= 0
    ).all()
    covered = {i for start, end in offsets for i in range(start, end)}
    visible = {i for i, character in enumerate(text) if not character.isspace()}
    assert covered >= visible - {i for i, c in enumerate(text) if c == "\u200b"}
    for start, end in offsets:
        assert text[start:end] == text[start:end].strip()


def test_words_begin_where_the_spaces_are(any_kind):
    """As a split at spaces and punctuation finds them."""
    ids = any_kind.encode("unrecognizable, (parenthesized) identifiers")
    starts = any_kind.word_starts[ids]
    words = np.split(np.array(ids), np.flatnonzero(starts)[1:])
    text = [any_kind.decode(word) for word in words]
    opening = (
        ["(", "parenthesized"] if any_kind.kind == "wordpiece" else ["(parenthesized"]
    )
    assert text == ["unrecognizable", ",", *opening, ")", "identifiers"]
    assert any_kind.word_starts.dtype == bool
    assert any_kind.word_starts[list(any_kind.special_ids)].all()


def test_a_word_within_a_sentence(any_kind):
    alone, within = (any_kind.encode(text) for text in (" object", "the object"))
    assert within == any_kind.encode("the") + alone


def test_pack_agrees_with_the_saved_file(any_kind, tmp_path, lines):
    """The library reads the file by itself, and joins pairs as `pack` does."""
    any_kind.save(tmp_path)
    other = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    texts = [line for line in lines if "[" not in line][:40]
    for pair in zip(texts, reversed(texts), strict=True):
        encoding = other.encode(*pair)
        packed = any_kind.pack([pair], 10_000)
        assert packed["token_ids"].tolist() == [encoding.ids]
        assert packed["segment_ids"].tolist() == [encoding.type_ids]
    assert (
        other.encode(texts[0]).ids
        == any_kind.pack(texts[:1], 10_000)["token_ids"][0].tolist()
    )
    decoded = other.decode(any_kind.encode("the value of it"))
    assert decoded.strip() == "the value of it"


def test_special_tokens_in_text_are_text_in_the_saved_file_too(any_kind, tmp_path):
    """As Hugging Face's `PreTrainedTokenizerFast` reads its configuration."""
    any_kind.save(tmp_path)
    other = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    text = "a [SEP] b[MASK] [UNK]"
    assert (
        other.token_to_id("[SEP]") in other.encode(text, add_special_tokens=False).ids
    )
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    other.encode_special_tokens = config["split_special_tokens"]
    packed = any_kind.pack([text], 100)["token_ids"][0].tolist()
    assert other.encode(text).ids == packed


def test_pack_pads_and_cuts_nothing(any_kind):
    packed = any_kind.pack(["the", ("the value", "of")], max_length=12)
    length = 3 + len(any_kind.encode("the value") + any_kind.encode("of"))
    assert packed["token_ids"].shape == (2, length)
    assert (packed["token_ids"][0] == any_kind.padding_id).sum() == length - 3
    assert packed["padding_mask"].sum(axis=1).tolist() == [3, length]
    with pytest.raises(ValueError, match=r"texts\[1\] has \d+ tokens.*max_length=4"):
        any_kind.pack(["the", "the value of it all"], max_length=4)
    with pytest.raises(ValueError, match="nothing to pack"):
        any_kind.pack([], max_length=4)


def test_ids_beyond_the_vocabulary_are_written_as_such(any_kind):
    """A model can have more ids than there are tokens, and sample them."""
    beyond = any_kind.vocabulary_size + 3
    name = f"[id {beyond}]"
    assert any_kind.readable(beyond) == name
    assert any_kind.tokens([beyond]) == [name]
    ids = any_kind.encode("the value")
    assert any_kind.decode([*ids, beyond, *ids]) == f"the value {name} the value"


def test_readable():
    trained = KINDS["byte_bpe"].train(["кот и кот"] * 3, 300)
    [cat] = trained.encode("кот")
    assert trained.vocabulary[cat] == "ĠÐºÐ¾ÑĤ"
    assert trained.readable(cat) == "Ġкот"
    part = trained.encode("语")[-1]
    assert trained.readable(part) == trained.vocabulary[part]
    assert trained.readable(trained.mask_id) == "[MASK]"
