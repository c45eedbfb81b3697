"""Saved tokenizers, and vocabularies from elsewhere."""

import json

import pytest
import tokenizers
from tokenizers import (
    AddedToken,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from keras_corrupt.tokenizers import (
    SPECIAL_TOKENS,
    ByteBPETokenizer,
    WordPieceTokenizer,
    from_file,
    load,
)
from tests.tokenizers.conftest import ODD

CASED = {"lowercase": False, "strip_accents": False}
ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def word_pieces(**flags):
    words = ["the", "cat", "##s", "!", "cafe", "café"]
    return WordPieceTokenizer([*SPECIAL_TOKENS, *words], **flags)


# === Saved ===


def test_save_and_load(any_kind, tmp_path, lines):
    any_kind.save(tmp_path / "a")
    loaded = load(tmp_path / "a")
    assert type(loaded) is type(any_kind)
    assert loaded.fingerprint == any_kind.fingerprint
    assert loaded.vocabulary == any_kind.vocabulary
    assert loaded.flags == any_kind.flags == {**loaded.flags, **CASED}
    assert loaded.roles == any_kind.roles
    assert loaded.encode_batch([*lines, *ODD]) == any_kind.encode_batch([*lines, *ODD])
    loaded.save(tmp_path / "b")
    names = {path.name for path in (tmp_path / "a").iterdir()}
    assert names - {"vocab.txt"} == {
        *("tokenizer.json", "tokenizer_config.json", "tokenizer_settings.json"),
    }
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (
            tmp_path / "b" / name
        ).read_bytes()
    # The saved file stands for the tokenizer, as a vocabulary does.
    given = from_file(tmp_path / "a" / "tokenizer.json", **CASED)
    assert given.fingerprint == any_kind.fingerprint
    with pytest.raises(ValueError, match=r"saved, not {'mask': '<m>'}. Leave out"):
        from_file(tmp_path / "a" / "tokenizer.json", {"mask": "<m>"}, **CASED)


def test_flags_of_word_pieces_are_kept(tmp_path):
    saved = word_pieces(lowercase=False, language_neutral=True)
    saved.save(tmp_path)
    loaded = load(tmp_path)
    assert loaded.fingerprint == saved.fingerprint != word_pieces().fingerprint
    assert loaded.flags == saved.flags
    assert (tmp_path / "vocab.txt").read_text().split("\n")[:-1] == saved.vocabulary


def test_load_rejects_a_changed_vocabulary(any_kind, tmp_path):
    any_kind.save(tmp_path)
    changed = "vocab.txt" if any_kind.kind == "wordpiece" else "tokenizer.json"
    text = (tmp_path / changed).read_text()
    assert "value" in text
    (tmp_path / changed).write_text(text.replace("value", "eulav"))
    # The library itself sees that merges of byte pairs give no such token.
    match = "not the vocabulary that was saved|not a tokenizer.json"
    with pytest.raises(ValueError, match=match):
        load(tmp_path)


def test_load_rejects_changed_scores(trained, tmp_path):
    trained["unigram"].save(tmp_path)
    path = tmp_path / "tokenizer.json"
    content = json.loads(path.read_text())
    content["model"]["vocab"][9][1] -= 1.0
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="not the vocabulary that was saved"):
        load(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        *("", "[]", "{}", "[" * 50_000, '"x"', "{" * 10, " " * 100_000),
        '{"kind": "os.system"}',
        '{"kind": ["wordpiece"]}',
        '{"kind": "wordpiece", "flags": {"lowercase": "yes"}}',
    ],
)
def test_load_rejects_malformed_settings(tmp_path, content):
    word_pieces().save(tmp_path)
    (tmp_path / "tokenizer_settings.json").write_text(content)
    with pytest.raises(ValueError, match=r"tokenizer_settings\.json: (not|too large)"):
        load(tmp_path)


def test_load_needs_its_files(tmp_path):
    with pytest.raises(ValueError, match=r"tokenizer_settings\.json: missing"):
        load(tmp_path)
    word_pieces().save(tmp_path)
    (tmp_path / "vocab.txt").unlink()
    with pytest.raises(ValueError, match=r"vocab\.txt: no such vocabulary file"):
        load(tmp_path)


# === vocab.txt ===


def test_unusable_vocabularies(tmp_path):
    with pytest.raises(ValueError, match="is a directory"):
        from_file(tmp_path)
    with pytest.raises(ValueError, match="no such vocabulary"):
        from_file(tmp_path / "vocab.txt")
    path = tmp_path / "vocab.txt"
    path.write_text("[PAD]\n[UNK]\n[CLS]\na\n")
    with pytest.raises(
        ValueError, match=r"vocab\.txt.*lacks.*\[SEP\].*\[MASK\].*roles="
    ):
        from_file(path)
    path.write_text("\n".join([*SPECIAL_TOKENS, "a", "a"]))
    with pytest.raises(ValueError, match=r"repeats tokens: \['a'\]"):
        from_file(path)
    path.write_text("")
    with pytest.raises(ValueError, match="empty"):
        from_file(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="UTF-8"):
        from_file(path)
    path.write_text("\r\n".join([*SPECIAL_TOKENS, "a", ""]), newline="")
    assert from_file(path).vocabulary == [*SPECIAL_TOKENS, "a"]


def test_space_around_a_token_of_a_vocabulary_is_none_of_it(tmp_path):
    """Or no text would have the token: BERT's `load_vocab` strips lines, too."""
    path = tmp_path / "vocab.txt"
    lines = ["cat ", " dog", "ran\t", "sat\u3000", "\u2028", "ends  "]
    path.write_text("\n".join([*SPECIAL_TOKENS, *lines]), encoding="utf-8")
    tokenizer = from_file(path)
    assert tokenizer.encode("cat dog ran sat ends") == [5, 6, 7, 8, 10]
    assert tokenizer.vocabulary[9] == "\u2028"  # ids are the lines' numbers
    path.write_text("\n".join([*SPECIAL_TOKENS, "cat", "cat "]))
    with pytest.raises(ValueError, match=r"repeats tokens: \['cat'\]"):
        from_file(path)


def test_roles_by_name(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(["<nix>", "[UNK]", "[CLS]", "[SEP]", "a"]))
    given = from_file(path, roles={"padding": "<nix>", "mask": "<hidden>"})
    assert given.padding_id == 0 and given.mask_id == 5
    assert given.vocabulary[5] == "<hidden>"
    with pytest.raises(ValueError, match="'pad' is none of padding, unknown"):
        from_file(path, roles={"pad": "<nix>"})
    with pytest.raises(ValueError, match="two roles share"):
        from_file(path, roles={"padding": "<nix>", "mask": "<nix>"})
    given.save(tmp_path / "saved")
    assert load(tmp_path / "saved").role_ids == given.role_ids


# === tokenizer.json ===


def save_bert(path, lowercase=True, strip_accents=None):
    """As Hugging Face's files of BERT are."""
    vocabulary = word_pieces().vocabulary
    engine = tokenizers.Tokenizer(
        models.WordPiece({t: i for i, t in enumerate(vocabulary)}, unk_token="[UNK]")
    )
    engine.normalizer = normalizers.BertNormalizer(
        lowercase=lowercase, strip_accents=strip_accents
    )
    engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    engine.add_special_tokens(list(SPECIAL_TOKENS))
    engine.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    engine.enable_padding(length=64)
    engine.enable_truncation(3)
    engine.save(str(path))
    return vocabulary


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("strip_accents", [True, False, None])
def test_bert_file(tmp_path, lowercase, strip_accents):
    path = tmp_path / "tokenizer.json"
    vocabulary = save_bert(path, lowercase, strip_accents)
    strips = lowercase if strip_accents is None else strip_accents
    flags = {"lowercase": lowercase, "strip_accents": strips}
    given = from_file(path, **flags)
    assert given.fingerprint == WordPieceTokenizer(vocabulary, **flags).fingerprint
    with pytest.raises(ValueError, match=f"lowercase={lowercase}.*Pass these flags"):
        from_file(path, lowercase=not lowercase)


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("normalizer", None),
        ("normalizer", {"type": "NFC"}),
        ("pre_tokenizer", {"type": "Whitespace"}),
        ("model", {"max_input_chars_per_word": 9}),
        ("model", {"continuing_subword_prefix": "@@"}),
    ],
)
def test_other_word_pieces_are_refused(tmp_path, part, change):
    path = tmp_path / "tokenizer.json"
    save_bert(path)
    content = json.loads(path.read_text())
    content[part] = content[part] | change if part == "model" else change
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=rf"json: its {part} is not one of BERT"):
        from_file(path)


@pytest.fixture(scope="module")
def roberta(lines):
    """As Hugging Face's file of RoBERTa is; its first word has no space."""
    engine = tokenizers.Tokenizer(models.BPE())
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    engine.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1000,
        special_tokens=ROBERTA,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    engine.train_from_iterator(lines, trainer)
    engine.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    engine.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return engine


def test_roberta_file(roberta, tmp_path, lines):
    path = tmp_path / "tokenizer.json"
    roberta.save(str(path))
    given = from_file(path, **CASED)
    assert given.kind == "byte_bpe" and given.flags == CASED
    assert given.vocabulary[:5] == ROBERTA
    assert (given.padding_id, given.mask_id, given.classify_id) == (1, 4, 0)
    texts = [*lines, *(text for text in ODD if "[" not in text)]
    theirs = roberta.encode_batch(texts, add_special_tokens=False)
    assert given.encode_batch(texts) == [encoding.ids for encoding in theirs]
    assert given.encode("<mask>")[0] > 4
    text = "the object  is"
    [(_, offsets)] = given.encode_with_offsets([text])
    spelled = "".join(text[start:end] for start, end in offsets)
    assert spelled == "theobjectis" and offsets[-1].tolist() == [12, 14]
    given.save(tmp_path / "saved")
    assert load(tmp_path / "saved").fingerprint == given.fingerprint


def test_xlm_roberta_file(tmp_path, trained, lines):
    """Another pre-tokenizer, and special tokens that the model would find in text."""
    pieces = json.loads(trained["unigram"].engine.to_str())["model"]["vocab"]
    vocabulary = [(token, 0.0) for token in ROBERTA] + [tuple(p) for p in pieces[5:]]
    engine = tokenizers.Tokenizer(models.Unigram(vocabulary, 3))
    engine.normalizer = normalizers.NFKC()
    engine.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    engine.add_special_tokens(ROBERTA)
    engine.save(str(tmp_path / "tokenizer.json"))
    given = from_file(tmp_path / "tokenizer.json")
    theirs = engine.encode_batch(lines, add_special_tokens=False)
    assert given.encode_batch(lines) == [encoding.ids for encoding in theirs]
    # The library itself takes the end of "x<s>" for the special token.
    engine.encode_special_tokens = True
    assert engine.token_to_id("<s>") in engine.encode("x<s>").ids
    assert given.classify_id not in given.encode("x<s>")


def test_special_tokens_of_the_config_beside_it(roberta, tmp_path, lines):
    renamed = roberta.to_str()
    for name in ROBERTA:
        renamed = renamed.replace(f'"{name}"', f'"|{name[1:-1]}|"')
    (tmp_path / "tokenizer.json").write_text(renamed)
    with pytest.raises(ValueError, match=r"lacks.*roles padding \(\[PAD\] or <pad>\)"):
        from_file(tmp_path / "tokenizer.json")
    config = {
        "cls_token": "|s|",
        "sep_token": {"content": "|/s|", "lstrip": False},
        "pad_token": "|pad|",
        "unk_token": "|unk|",
        "mask_token": "|mask|",
        "model_max_length": 512,
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    given = from_file(tmp_path / "tokenizer.json")
    assert [given.role_ids[role] for role in given.roles] == [1, 3, 0, 2, 4]
    assert given.fingerprint != ByteBPETokenizer.train(lines, 300).fingerprint


def test_a_token_that_is_missing_is_added(tmp_path):
    """GPT-2's vocabulary has one special token."""
    engine = tokenizers.Tokenizer(models.BPE())
    engine.pre_tokenizer = pre_tokenizers.ByteLevel()
    trainer = trainers.BpeTrainer(
        special_tokens=["<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    engine.train_from_iterator(["a cat"], trainer)
    engine.save(str(tmp_path / "tokenizer.json"))
    names = ["<pad>", "<unk>", "<s>", "<|end|>", "<mask>"]
    roles = dict(
        zip(("padding", "unknown", "classify", "separate", "mask"), names, strict=True)
    )
    given = from_file(tmp_path / "tokenizer.json", roles=roles)
    size = engine.get_vocab_size()
    assert [*given.role_ids.values()] == [size, size + 1, size + 2, 0, size + 3]
    given.save(tmp_path / "saved")
    again = from_file(tmp_path / "saved" / "tokenizer.json")
    assert again.role_ids == given.role_ids


@pytest.mark.parametrize(
    ("engine", "match"),
    [
        (
            tokenizers.Tokenizer(models.WordLevel({"a": 0}, "a")),
            "its model is WordLevel",
        ),
        (tokenizers.Tokenizer(models.BPE({"a": 0}, [])), "no byte-level BPE"),
    ],
)
def test_unsupported_files_are_refused(tmp_path, engine, match):
    engine.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ValueError, match=rf"tokenizer\.json: .*{match}"):
        from_file(tmp_path / "tokenizer.json", roles=dict(padding="a"))


@pytest.mark.parametrize("content", ["", "[]", "{}", "[" * 5_000, '{"model": 1}'])
def test_malformed_files_are_refused(tmp_path, content):
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(ValueError, match="not a tokenizer.json that"):
        from_file(tmp_path / "tokenizer.json")
