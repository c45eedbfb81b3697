"""Ids against the `sentencepiece` library."""

import io
import random

import pytest

from keras_corrupt.tokenizers import from_file, load
from tests.tokenizers.conftest import ODD

spm = pytest.importorskip("sentencepiece")

VARIANTS = {
    "default": {},
    "folded": {"normalization_rule_name": "nmt_nfkc_cf"},
    "identity": {"normalization_rule_name": "identity"},
    "no prefix": {"add_dummy_prefix": False},
    "all spaces": {"remove_extra_whitespaces": False},
    "bytes": {"byte_fallback": True},
    "symbols": {"user_defined_symbols": ["<mask>", "(", "ing", "in", "..."]},
    "across words": {"split_by_whitespace": False},
    "control": {"control_symbols": ["[CLS]", "[SEP]", "<mask>"]},
}


def train(path, lines, **options):
    written = io.BytesIO()
    options = {
        **{"vocab_size": 700, "pad_id": 3, "user_defined_symbols": ["<mask>"]},
        **options,
    }
    if "control_symbols" in options:
        del options["user_defined_symbols"]
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(lines[:1500]),
        model_writer=written,
        minloglevel=2,
        num_threads=1,
        **options,
    )
    path.write_bytes(written.getvalue())
    return spm.SentencePieceProcessor(model_file=str(path))


def assert_same(found, expected):
    """Checks ids. Two ways to cut a text may be equally likely; each is right then."""
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert a == b or sorted(a) == sorted(b)  # such as 0 000 and 000 0
    assert sum(a != b for a, b in zip(found, expected, strict=True)) < 5


@pytest.mark.parametrize("variant", VARIANTS)
def test_gives_the_ids_of_sentencepiece(variant, lines, tmp_path):
    theirs = train(tmp_path / "a.model", lines, **VARIANTS[variant])
    ours = from_file(tmp_path / "a.model")
    rng = random.Random(0)
    letters = sorted({*"".join(lines[:200]), *"éßǄ語ﬁ①\t 　"})
    mixed = ["".join(rng.choices(letters, k=30)) for _ in range(200)]
    texts = [text for text in (*lines, *mixed, *ODD) if "<mask>" not in text]
    assert_same(ours.encode_batch(texts), theirs.encode(texts))
    assert ours.vocabulary == [theirs.id_to_piece(i) for i in range(len(theirs))]
    assert ours.padding_id == theirs.pad_id() and ours.unknown_id == theirs.unk_id()
    assert ours.flags["lowercase"] is (variant == "folded")
    # Special tokens are text, whatever they are to SentencePiece.
    special = set(ours.special_ids) - {ours.unknown_id}
    assert not special & set(ours.encode("a <mask> b <s> [CLS]"))
    ours.save(tmp_path / "saved")
    again = load(tmp_path / "saved")
    assert again.encode_batch(texts[:300]) == theirs.encode(texts[:300])


def test_missing_roles(lines, tmp_path):
    path = tmp_path / "a.model"
    theirs = train(path, lines, pad_id=-1, user_defined_symbols=[])
    with pytest.raises(
        ValueError, match=r"a\.model: .*lacks.*padding.*mask \(\[MASK\] or <mask>\)"
    ):
        from_file(path)
    ours = from_file(path, roles={"mask": "<mask>", "padding": "<pad>"})
    assert ours.role_ids == {
        **{"padding": 700, "unknown": 0, "classify": 1, "separate": 2, "mask": 701}
    }
    assert ours.encode_batch(lines[:300]) == theirs.encode(lines[:300])
    ours.save(tmp_path / "saved")
    assert load(tmp_path / "saved").fingerprint == ours.fingerprint


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"model_type": "bpe"}, "of the kind BPE.*Only unigram"),
        ({"model_type": "char"}, "of the kind character"),
        ({"treat_whitespace_as_suffix": True}, "spaces behind words"),
        (
            {"user_defined_symbols": ["<mask>", "ﬁ"]},
            "user-defined symbol 'ﬁ'.*not supported",
        ),
    ],
)
def test_what_cannot_be_exact_is_refused(options, match, lines, tmp_path):
    if options.get("model_type") == "char":
        options["vocab_size"] = 70
    train(tmp_path / "a.model", lines, **options)
    with pytest.raises(ValueError, match=match):
        from_file(tmp_path / "a.model")


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff" * 9, b"\n\x05ab", b"text\n"])
def test_malformed_models_are_refused(content, tmp_path):
    (tmp_path / "a.model").write_bytes(content)
    with pytest.raises(ValueError, match="a.model: not a SentencePiece model"):
        from_file(tmp_path / "a.model")


def test_a_cut_or_damaged_model_is_refused(lines, tmp_path):
    path = tmp_path / "a.model"
    train(path, lines)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2 - 1])
    with pytest.raises(ValueError):
        from_file(path)
