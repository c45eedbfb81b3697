"""How a vocabulary cuts the text: what is lost is counted, said, and not trained on."""

import random
import re

import numpy as np
import pytest
import tensorflow as tf

from keras_corrupt.data import splits
from keras_corrupt.data.info import DatasetError
from keras_corrupt.data.prepare import prepare_dataset
from keras_corrupt.data.segmentation import (
    check_lost_text,
    describe_segmentation,
    warnings,
)
from keras_corrupt.tokenizers import (
    KINDS,
    SPECIAL_TOKENS,
    ByteBPETokenizer,
    WordPieceTokenizer,
)

AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"


def pieces(words, *, spelled="", **flags):
    letters = [f"{mark}{letter}" for letter in spelled for mark in ("", "##")]
    return WordPieceTokenizer([*SPECIAL_TOKENS, *words, *letters], **flags)


@pytest.mark.parametrize(
    ("tokenizer", "text", "tokens_per_word", "lost", "in_long_words"),
    [
        (pieces(["the", "cat", ",", "##s"]), "The cat, cats", 1.33, 0, 0),
        (pieces([], spelled="thecas"), "the cats", 3.5, 0, 0),
        (pieces(["the"]), "the cat", 1, 0.5, 0),
        # One token of three is unknown, and stands for 120 characters of 126.
        (pieces(["the"], spelled="x"), "the the " + "x" * 120, None, 0.9524, 0.9524),
        # A script without spaces is not judged by words.
        (pieces("語言"), "語言" * 20, None, 0, 0),
        (pieces(["the"]), "", None, 0, 0),
        # What has no letters of its own is not lost.
        (pieces(["cafe"]), "Cafe\u0301 caf\u00e9\u200b\u0007", 1, 0, 0),
    ],
)
def test_segmentation(tokenizer, text, tokens_per_word, lost, in_long_words):
    found = describe_segmentation(tokenizer, [text])
    assert found["tokens_per_word"] == tokens_per_word
    assert found["lost_characters"] == lost
    assert found["lost_in_long_words"] == in_long_words
    if text:
        ids = tokenizer.encode(text)[:16]
        assert found["examples"] == [" ".join(tokenizer.tokens(ids))]


def test_a_vocabulary_without_unknown_tokens_loses_text_too():
    """Other libraries' byte vocabularies may lack bytes, which then leave no trace."""
    engine = ByteBPETokenizer.train(["the cat"] * 9, 300).engine
    vocabulary = engine.get_vocab()
    content = re.sub(r'\n\s*"z": \d+,', "", engine.to_str(pretty=True))
    assert content != engine.to_str(pretty=True)
    last = f'": {len(vocabulary) - 1}'
    assert content.count(last) == 1
    lacking = type(engine).from_str(content.replace(last, f'": {vocabulary["z"]}'))
    found = describe_segmentation(ByteBPETokenizer(lacking), ["a zebra"])
    assert found["lost_characters"] == round(1 / 6, 4)


@pytest.mark.parametrize("given", [False, True])
def test_warnings_advise_what_was_not_done(given):
    found = describe_segmentation(pieces([], spelled="thecas"), ["the cats"])
    (line,) = warnings(found, "wordpiece", given)
    assert "3.5 tokens a word" in line
    assert ("(no --vocabulary)" in line) == given
    assert ("a larger one (--vocabulary_size)" in line) != given
    text = "the cat sat on the mat " * 20 + "hat"
    words = ["the", "cat", "sat", "on", "mat"]
    found = describe_segmentation(pieces(words), [text])
    assert found["lost_characters"] == round(3 / 343, 4)
    assert not [*warnings(found, "wordpiece", given)]
    found["lost_characters"] = 0.02
    (line,) = warnings(found, "wordpiece", given)
    assert "loses 2.0% of the text" in line
    check_lost_text(found, "wordpiece", given)


# === Text without spaces ===


def proteins(documents, length=300, seed=2):
    rng = random.Random(seed)
    return ["".join(rng.choices(AMINO_ACIDS, k=length)) for _ in range(documents)]


def prepared(lines, tmp_path, name="examples", **options):
    path = tmp_path / "text.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    defaults = {
        "vocabulary_size": 400,
        "sequence_length": 32,
        "validation_fraction": 0.2,
        "workers": 1,
        "documents": "lines",
    }
    return prepare_dataset(str(path), tmp_path / name, **{**defaults, **options})


def advised(message):
    return re.findall(r"--tokenizer (\w+)", message)


def test_text_without_spaces_is_not_lost_unnoticed(tmp_path):
    """What the error advises is none that was done, and works."""
    with pytest.raises(DatasetError, match="loses 100.0% of the text") as error:
        prepared(proteins(40), tmp_path)
    assert "in words of more than 100" in str(error.value)
    assert not (tmp_path / "examples").exists()
    assert advised(str(error.value)) == ["unigram", "byte_bpe"]
    for kind in advised(str(error.value)):
        info = prepared(proteins(40), tmp_path, kind, tokenizer=kind)
        assert info.segmentation["lost_characters"] == 0
        # A token is at most a few letters.
        assert info.train.tokens + info.validation.tokens > 40 * 300 / 16


def test_characters_are_counted_not_tokens(tmp_path):
    """As in Thai, where what stands between spaces is a phrase."""
    lines = [f"mai pen rai krap na kha di mak ja {word}" for word in proteins(40, 150)]
    with pytest.raises(DatasetError, match=r"loses 85\.7% of the text"):
        prepared(lines, tmp_path)


def test_a_given_vocabulary_that_lacks_the_letters(tmp_path, capsys):
    pieces([], spelled="abc").save(tmp_path / "given")
    lines = ["a b cab xyz"] * 40
    given = tmp_path / "given" / "tokenizer.json"
    with pytest.raises(DatasetError, match="loses 37.5%.*ones that it lacks") as error:
        prepared(lines, tmp_path, vocabulary=given)
    assert "Train one on the corpus (no --vocabulary" in str(error.value)
    assert "--grow_vocabulary" in str(error.value)
    for options in ({}, {"vocabulary": given, "grow_vocabulary": 20}):
        info = prepared(lines, tmp_path, f"examples_{len(options)}", **options)
        assert info.segmentation["lost_characters"] == 0
    with pytest.raises(DatasetError, match="no --vocabulary, no --init_from") as error:
        prepared(proteins(40), tmp_path, vocabulary=given)
    assert advised(str(error.value)) == ["unigram", "byte_bpe"]


def test_what_the_sample_did_not_show_is_found(tmp_path, monkeypatch):
    """The sample is of the first documents; a foreign part may follow."""
    monkeypatch.setattr(splits, "_SAMPLE_SIZE", 100)
    lines = ["the cat sat on the mat"] * 400 + proteins(10)
    with pytest.raises(DatasetError, match=r"loses 30\.6% of the text"):
        prepared(lines, tmp_path)
    assert not (tmp_path / "examples").exists()


def records_of(info, split):
    """The token ids of all records."""
    files = [str(info.directory / shard.file) for shard in info.split(split).shards]
    feature = {"token_ids": tf.io.RaggedFeature(tf.int64)}
    return [
        tf.io.parse_single_example(record, feature)["token_ids"].numpy()
        for record in tf.data.TFRecordDataset(files)
    ]


def test_examples_that_are_mostly_unknown_are_left_out(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(splits, "_SAMPLE_SIZE", 100)
    words = ["the cat sat on the mat"] * 600
    lines = words[:300] + proteins(2, 150) + words[300:]
    info = prepared(lines, tmp_path)
    assert info.segmentation["unknown_examples"] == 2
    assert info.segmentation["lost_characters"] == round(300 / (300 + 600 * 17), 4)
    assert "2 examples left out: most of their tokens are unknown" in (
        capsys.readouterr().err
    )
    tokenizer = prepare_tokenizer(info)
    counts, examples = np.zeros(tokenizer.vocabulary_size, int), 0
    for split in ("train", "validation"):
        records = records_of(info, split)
        text = [ids[(ids != 2) & (ids != 3)] for ids in records]
        assert sum(map(len, text)) == info.split(split).tokens
        assert all((ids == tokenizer.unknown_id).mean() <= 0.5 for ids in text)
        examples += len(records)
        if split == "train":
            counts += np.bincount(np.concatenate(text), minlength=len(counts))
    assert examples == 600
    np.testing.assert_array_equal(info.unigrams(), counts)


def prepare_tokenizer(info):
    from keras_corrupt.tokenizers import load

    return load(info.directory)


def test_letters_of_large_scripts_are_known():
    """Chinese has thousands, none of which is frequent."""
    rng = random.Random(0)
    letters = [chr(0x4E00 + number) for number in range(3000)]
    lines = ["".join(rng.choices(letters, k=60)) for _ in range(1000)]
    for kind in ("wordpiece", "unigram"):
        tokenizer = KINDS[kind].train(lines, 15_000)
        found = describe_segmentation(tokenizer, lines[:50])
        assert found["lost_characters"] < 0.002, kind
    # A small vocabulary has no room for them.
    small = KINDS["wordpiece"].train(lines, 2000)
    assert describe_segmentation(small, lines[:50])["lost_characters"] > 0.5


# === Accents ===


def test_vowel_signs_that_vanish_are_told_of():
    """Combining marks are accents to BERT: words that differ by them become one."""
    words = ["कि", "कु", "के", "क", "मे", "म", "रा"]
    # Of 12 letters and marks ु, े and े go; कु, के and क become one, so do मे and म.
    found = describe_segmentation(pieces(["क", "म", "कि", "रा"]), [" ".join(words)])
    assert found["stripped_letters"] == 0.25
    assert found["merged_words"] == round(3 / 7, 4)
    (line,) = warnings(found, "wordpiece", False)
    assert "changes 25.0% of the letters, and makes 42.9% of the different" in line
    assert "--no_strip_accents" in line and "--vocabulary" not in line
    (line,) = warnings(found, "wordpiece", True)
    assert "(no --vocabulary)" in line
    kept = describe_segmentation(pieces(words, strip_accents=False), [" ".join(words)])
    assert kept["stripped_letters"] == kept["merged_words"] == 0
    assert not [*warnings(kept, "wordpiece", False)]


def test_accents_of_french_are_no_fault():
    text = (
        "Le vent du nord et le soleil se disputaient, chacun assurant que c'était lui "
        "le plus fort, quand ils ont vu un voyageur qui s'avançait, enveloppé dans son "
        "manteau"
    )
    tokenizer = WordPieceTokenizer.train([text] * 9, 300)
    found = describe_segmentation(tokenizer, [text])
    assert 0 < found["stripped_letters"] < 0.04 and found["merged_words"] == 0
    assert not [*warnings(found, "wordpiece", False)]


@pytest.mark.parametrize("kind", KINDS)
def test_stripping_is_what_the_tokenizers_do(kind):
    """What is counted is what the vocabulary's own normaliser changes."""
    words = "कि कु के क मे म रा été ete naïve ắ が か กิ".split()
    tokenizer = KINDS[kind].train(words * 9, 400)
    different = {tokenizer.decode(tokenizer.encode(word)) for word in words}
    found = describe_segmentation(tokenizer, [" ".join(words)])
    assert found["merged_words"] == round(1 - len(different) / len(words), 4)
