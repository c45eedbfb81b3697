import re

import pytest

from keras_corrupt.data.corpus import CorpusError, open_corpus
from keras_corrupt.data.info import DatasetError
from keras_corrupt.data.prepare import prepare_dataset
from keras_corrupt.data.splits import held_out_lines, is_held_out
from keras_corrupt.tokenizers import KINDS, WordPieceTokenizer, load


def sample(path, fraction, **options):
    sources = open_corpus(str(path), **options)
    return held_out_lines(sources, fraction=fraction, seed=0)


def test_held_out_lines(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("\n".join(f"line {number}" for number in range(500)))
    lines = sample(path, 0.1, documents="lines")
    assert lines == [
        f"line {number}"
        for number in range(500)
        if is_held_out(0, number, fraction=0.1, seed=0)
    ]


@pytest.mark.parametrize("fraction", [1e-12, 1 - 1e-12])
@pytest.mark.parametrize("documents", [2, 3, 50])
def test_the_fraction_that_is_named_works(tmp_path, fraction, documents):
    path = tmp_path / "a.txt"
    path.write_text("\n\n".join(f"text {number}" for number in range(documents)))
    split = "train" if fraction > 0.5 else "validation"
    with pytest.raises(DatasetError, match=f"in the {split} split") as error:
        sample(path, fraction)
    named = float(re.search(r"--validation_fraction (\S+),", str(error.value))[1])
    held_out = len(sample(path, named))
    assert 0 < held_out < documents
    assert min(held_out, documents - held_out) <= max(1, documents // 3)


def test_a_single_document_names_the_flag(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\nthree\nfour\n")
    with pytest.raises(DatasetError, match=r"single document.*--documents lines"):
        sample(path, 0.5)
    assert 0 < len(sample(path, 0.5, documents="lines")) < 4
    path.write_text("\n")
    with pytest.raises(CorpusError, match="corpus is empty"):
        sample(path, 0.5)


def test_splits_are_checked_before_a_vocabulary_is_trained(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    monkeypatch.setattr(WordPieceTokenizer, "train", None)
    with pytest.raises(DatasetError, match="single document"):
        prepare_dataset(str(tmp_path / "a.txt"), tmp_path / "out", progress=False)


def test_lines_as_documents(write_corpus, settings, tmp_path, capsys):
    path = tmp_path / "a.txt"
    write_corpus(path)
    count = sum(1 for line in path.read_text().split("\n") if line)
    options = settings | {"documents": "lines", "progress": True}
    info = prepare_dataset(str(path), tmp_path / "out", **options)
    assert info.train.documents + info.validation.documents == count
    said = capsys.readouterr().err
    assert f"{count:,} documents" in said and "0.0 MB/s" not in said
    assert f"{info.segmentation['tokens_per_word']} tokens a word" in said
    assert info.segmentation["examples"][0] in said
    with pytest.raises(DatasetError, match="documents: was 'lines', asked 'blank_"):
        prepare_dataset(str(path), tmp_path / "out", **settings)


@pytest.mark.parametrize("kind", [*KINDS, "language_neutral"])
def test_umlauts(kind, tmp_path, capsys):
    """They vanish by default, and stay if asked, with every kind of vocabulary."""
    text = "Die Bäume blühen über größeren Höfen.\n"
    (tmp_path / "a.txt").write_text(text * 200)
    options = dict(vocabulary_size=400, documents="lines", validation_fraction=0.1)
    if kind == "language_neutral":
        options["language_neutral"] = True
    else:
        options["tokenizer"] = kind
    for strip_accents, expected in (
        (True, "baume bluhen uber"),
        (False, "bäume blühen über"),
    ):
        output = tmp_path / str(strip_accents)
        prepare_dataset(
            str(tmp_path / "a.txt"), output, strip_accents=strip_accents, **options
        )
        tokenizer = load(output)
        assert expected in tokenizer.decode(tokenizer.encode(text))
    said = capsys.readouterr().err
    assert ("can be exported" in said) == (kind != "wordpiece")
