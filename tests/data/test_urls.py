"""Corpora at URLs: fsspec's file system in memory stands for a store of objects."""

import gzip
import sys

import pytest

from keras_corrupt.data.corpus import CorpusError, open_corpus
from keras_corrupt.data.info import DatasetError
from keras_corrupt.data.prepare import prepare_dataset
from keras_corrupt.training.config import PretrainConfig
from keras_corrupt.training.pretraining import pretrain

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def bucket():
    files = fsspec.filesystem("memory")
    yield lambda name, data: files.pipe(f"/bucket/{name}", data)
    files.rm("/bucket", recursive=True)


def names(corpus):
    return [source.name for source in open_corpus(corpus)]


def read(corpus, **options):
    return [
        pair for source in open_corpus(corpus, **options) for pair in source.lines()
    ]


def test_files_folders_and_globs(bucket):
    bucket("deep/a.txt.gz", gzip.compress(b"one\n\ntwo\n"))
    bucket("b.csv", b"text\nthree\n")
    bucket("c.md", b"x")
    bucket("data/dataset.json", b"{}")
    bucket("data/vocab.txt", b"[PAD]")
    corpus = open_corpus("memory:///bucket")
    assert [s.name for s in corpus] == [
        *("memory:///bucket/b.csv", "memory:///bucket/deep/a.txt.gz")
    ]
    assert corpus.left_out == {
        "folders of examples, models or runs": [1, "memory:///bucket/data/"],
        "files ending in .md": [1, "memory:///bucket/c.md"],
    }
    assert read("memory:///bucket/deep/a.txt.gz") == [(0, "one"), (1, "two")]
    assert names("memory:///bucket/*.csv") == ["memory:///bucket/b.csv"]
    assert read(["memory:///bucket/b.csv"]) == [(0, "three")]


def test_parquet(bucket, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"text": ["a", "b"]}), tmp_path / "a.parquet")
    bucket("a.parquet", (tmp_path / "a.parquet").read_bytes())
    assert read("memory:///bucket/") == [(0, "a"), (1, "b")]
    bucket("a.parquet", b"PAR1")
    with pytest.raises(CorpusError, match=r"bucket/a\.parquet: after row 0.*damaged"):
        read("memory:///bucket/")


def test_the_same_shards_as_from_files(bucket, corpus, settings, tmp_path, prepared):
    for name in "ab":
        with open(corpus.replace("*", name), "rb") as file:
            bucket(f"{name}.txt", file.read())
    info = prepare_dataset("memory:///bucket/*.txt", tmp_path / "out", **settings)
    assert info.train.tokens == prepared.train.tokens
    assert (info.unigrams() == prepared.unigrams()).all()
    again = prepare_dataset("memory:///bucket/*.txt", tmp_path / "out", **settings)
    assert again == info
    bucket("b.txt", b"other")
    with pytest.raises(DatasetError, match=r"memory:///bucket/b\.txt: changed"):
        prepare_dataset("memory:///bucket/*.txt", tmp_path / "out", **settings)


def test_errors_name_the_place_or_the_remedy(bucket, monkeypatch):
    bucket("a.jsonl", b'{"text": "x"}\n{}\n')
    bucket("b.txt.gz", gzip.compress(b"text" * 1000)[:-9])
    bucket("c.pdf", b"x")
    with pytest.raises(CorpusError, match=r"memory:///bucket/a\.jsonl: line 2: no fi"):
        read("memory:///bucket/a.jsonl")
    with pytest.raises(CorpusError, match=r"b\.txt\.gz: after line 1 .* cut short"):
        read("memory:///bucket/b.txt.gz")
    with pytest.raises(CorpusError, match=r"c\.pdf: unknown extension"):
        names("memory:///bucket/c.pdf")
    with pytest.raises(CorpusError, match="no such file"):
        names("memory:///bucket/other")
    with pytest.raises(CorpusError, match="corpus='what://x' cannot be read: .*what"):
        names("what://x")


@pytest.mark.parametrize(
    ("url", "module", "extra"), [("gs://b", "gcsfs", "gs"), ("s3://b", "s3fs", "s3")]
)
def test_a_missing_library_is_named_by_its_extra(monkeypatch, url, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(CorpusError, match=rf"pip install -e '\.\[{extra}\]'"):
        names(url)


def test_an_output_is_no_url(corpus, settings, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    message = r"--output gs:/+bucket/run.*cannot rename.*local"
    with pytest.raises(ValueError, match=message):
        prepare_dataset(corpus, "gs://bucket/run", **settings)
    config = PretrainConfig("Electra", "tiny", "gs://bucket/run", smoke=True)
    with pytest.raises(ValueError, match=message):
        pretrain(config)
    assert not [*tmp_path.iterdir()]
