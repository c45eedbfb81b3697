import gzip
import json
import lzma
import os
import sys
import types

import numpy as np
import pytest
import zstandard

from keras_corrupt.data.corpus import CorpusError, open_corpus

TEXT = "one\ntwo\n\n\n  \nthree\n"
DOCUMENTS = [(0, "one"), (0, "two"), (1, "three")]


def read(corpus, **options):
    return [
        pair for source in open_corpus(corpus, **options) for pair in source.lines()
    ]


def compress(path, data):
    pack = {
        ".gz": gzip.compress,
        ".xz": lzma.compress,
        ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
    }.get(path.suffix, bytes)
    path.write_bytes(pack(data))
    return str(path)


@pytest.mark.parametrize("packed", ["", ".gz", ".xz", ".zst"])
def test_reads_text_and_json_lines(tmp_path, packed):
    text = compress(tmp_path / f"a.txt{packed}", TEXT.encode())
    records = [{"text": "one\n\ntwo"}, {"text": " \n"}, {"text": "three", "id": 1}]
    lines = "\n".join(map(json.dumps, records)) + "\n\n"
    json_lines = compress(tmp_path / f"a.jsonl{packed}", lines.encode())
    assert read(text) == DOCUMENTS
    assert read(json_lines) == DOCUMENTS


def test_zstandard_frames_in_a_row(tmp_path):
    pack = zstandard.ZstdCompressor().compress
    (tmp_path / "a.txt.zst").write_bytes(pack(b"one\ntw") + pack(b"o\n\nthree"))
    assert read(str(tmp_path)) == DOCUMENTS


def test_byte_order_mark_and_windows_line_ends(tmp_path):
    (tmp_path / "a.txt").write_bytes(
        b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode()
    )
    assert read(str(tmp_path)) == DOCUMENTS


def test_globs_and_directories_are_sorted(tmp_path):
    (tmp_path / "deep").mkdir()
    for name in ("b.txt", "a.txt", "deep/c.jsonl", "notes.md"):
        (tmp_path / name).write_text('{"text": "x"}')
    found = [os.path.relpath(s.name, tmp_path) for s in open_corpus(str(tmp_path))]
    assert found == ["a.txt", "b.txt", "deep/c.jsonl"]
    found = [os.path.basename(s.name) for s in open_corpus(f"{tmp_path}/*.txt")]
    assert found == ["a.txt", "b.txt"]


@pytest.fixture
def linked(tmp_path):
    """A folder with a linked one, capitals, and what cannot be read."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "two.txt").write_text("two")
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "one.txt").write_text("one")
    (folder / "THREE.TXT.GZ").write_bytes(gzip.compress(b"three"))
    (folder / "README.md").write_text("x")
    (folder / "NEWS.MD").write_text("x")
    (folder / "LICENSE").write_text("x")
    (folder / "more").symlink_to("../src")
    (folder / "again").symlink_to("../src")
    (folder / "up").symlink_to("..")
    return folder


def test_a_directory_is_read_behind_links_and_in_capitals(linked):
    corpus = open_corpus(str(linked))
    assert [line for source in corpus for _, line in source.lines()] == [
        *("three", "two", "one")
    ]
    names = [os.path.relpath(source.name, linked) for source in corpus]
    assert names == ["THREE.TXT.GZ", "again/two.txt", "one.txt"]


def test_what_is_left_out_is_counted(linked):
    assert open_corpus(str(linked)).left_out == {
        "files ending in nothing known": [1, str(linked / "LICENSE")],
        "files ending in .md": [2, str(linked / "NEWS.MD")],
        "links to a folder above": [1, str(linked / "up")],
    }
    assert open_corpus(str(linked / "*o*e*")).left_out == {
        "folders": [1, str(linked / "more")]
    }


def test_kinds_of_what_is_left_out_are_few(tmp_path):
    for number in range(30):
        (tmp_path / f"a.{number:02}").write_text("x")
    (tmp_path / "a.txt").write_text("x")
    left_out = open_corpus(str(tmp_path)).left_out
    assert len(left_out) == 11 and left_out["others"][0] == 20


@pytest.mark.skipif(os.getuid() == 0, reason="root reads every folder")
def test_a_folder_that_cannot_be_read_is_an_error(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "closed").mkdir(mode=0)
    with pytest.raises(CorpusError, match="closed: cannot be read .Permission denied"):
        open_corpus(str(tmp_path))


def test_long_line_is_cut_at_spaces(tmp_path, monkeypatch):
    monkeypatch.setattr("keras_corrupt.data.sources._MAX_LINE_BYTES", 1000)
    monkeypatch.setattr("keras_corrupt.files.text._BLOCK_BYTES", 300)
    words = [f"wörd{number}" for number in range(2000)]
    (tmp_path / "a.txt").write_text(" ".join(words), encoding="utf-8")
    lines = read(str(tmp_path))
    assert {document for document, _ in lines} == {0}
    assert [word for _, line in lines for word in line.split()] == words
    assert max(len(line.encode()) for _, line in lines) <= 1300
    assert len(lines) > 10


def test_long_line_without_spaces_splits_no_character(tmp_path, monkeypatch):
    monkeypatch.setattr("keras_corrupt.data.sources._MAX_LINE_BYTES", 100)
    monkeypatch.setattr("keras_corrupt.files.text._BLOCK_BYTES", 61)
    text = "語é" * 500
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    assert "".join(line for _, line in read(str(tmp_path))) == text


def test_undecodable_bytes_are_located_or_skipped(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"good\nbad \xff here\nfine\n")
    with pytest.raises(CorpusError, match=r"a\.txt: line 2, byte 9: .*xff.*skip"):
        read(str(path))
    (source,) = open_corpus(str(path), on_bad_bytes="skip")
    assert list(source.lines()) == [(0, "good"), (0, "fine")]
    assert source.skipped == {"lines": 1}


def test_lone_surrogate_counts_as_bad_bytes(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "x\\ud800"}\n{"text": "y"}\n')
    with pytest.raises(CorpusError, match="line 1.*surrogate"):
        read(str(path))
    assert read(str(path), on_bad_bytes="skip") == [(0, "y")]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ("{", "line 2: not JSON"),
        ("[" * 100_000, "line 2: not JSON"),
        ('{"body": "x"}', r'line 2: no field "text" \(found .*body.*by --text_column'),
        ('{"text": 3}', 'line 2: the field "text" is no string but 3'),
        ('{"text": null}', 'line 2: the field "text" is no string but null'),
        ('["text"]', "line 2: no JSON object but a list"),
    ],
)
def test_bad_json_is_located_or_skipped(tmp_path, record, message):
    lines = ['{"text": "fine"}', record, '{"text": "good"}', record]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    with pytest.raises(CorpusError, match=f"{message}.*--on_bad_rows skip"):
        read(str(tmp_path))
    (source,) = open_corpus(str(tmp_path), on_bad_rows="skip")
    assert list(source.lines()) == [(0, "fine"), (1, "good")]
    assert source.skipped == {"rows": 2}


@pytest.mark.parametrize("packed", [".gz", ".xz", ".zst"])
@pytest.mark.parametrize("damage", ["cut", "flipped", "not compressed"])
def test_damaged_compression_is_an_error(tmp_path, packed, damage):
    path = tmp_path / f"a.txt{packed}"
    compress(path, os.urandom(30_000).hex().encode())
    data = path.read_bytes()
    path.write_bytes(
        {
            "cut": data[:-200],
            "flipped": data[:100] + b"\x00\xff" * 10 + data[120:],
            "not compressed": b"plain text\n",
        }[damage]
    )
    with pytest.raises(CorpusError, match=r"a\.txt.*damaged"):
        read(str(path))


def test_what_cannot_be_found_is_an_error(tmp_path):
    (tmp_path / "a.pdf").write_text("x")
    with pytest.raises(CorpusError, match="no such file"):
        open_corpus(f"{tmp_path}/*.txt")
    with pytest.raises(CorpusError, match=r"unknown extension.*\.jsonl.*\.zst"):
        open_corpus(f"{tmp_path}/a.pdf")
    with pytest.raises(CorpusError, match=r"holds no file.*1 files ending in \.pdf"):
        open_corpus(str(tmp_path))
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "dataset.json").write_text("{}")
    with pytest.raises(CorpusError, match="left out: 1 folders of examples"):
        open_corpus(f"{tmp_path}/run")
    with pytest.raises(CorpusError, match="empty"):
        open_corpus([])
    with pytest.raises(CorpusError, match="twice"):
        open_corpus(["python-docs", "python-docs"])
    for name in ("on_bad_bytes", "on_bad_rows"):
        with pytest.raises(ValueError, match=f"{name}='ignore'"):
            open_corpus("python-docs", **{name: "ignore"})


def test_a_run_in_the_folder_of_its_corpus_is_not_read(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    for name in ("run/run.json", "run/metrics.csv", "run/data/dataset.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    (tmp_path / "run" / "data" / "vocab.txt").write_text("[PAD]")
    (tmp_path / "run" / "notes").mkdir()
    (tmp_path / "run" / "notes" / "b.txt").write_text("two\n")
    for specification in (str(tmp_path), f"{tmp_path}/**/*.txt", f"{tmp_path}/**/*.*"):
        corpus = open_corpus(specification)
        assert [source.name for source in corpus] == [str(tmp_path / "a.txt")]
        assert corpus.left_out["folders of examples, models or runs"][0] == 1
    named = open_corpus(f"{tmp_path}/run/notes/*.txt")
    assert [source.name for source in named] == [str(tmp_path / "run/notes/b.txt")]
    with pytest.raises(CorpusError, match="left out: 1 folders of examples, models or"):
        open_corpus(f"{tmp_path}/*/*/vocab.txt")


def test_python_docs_is_real_and_executes_nothing():
    before = set(sys.modules)
    lines = read("python-docs")
    loaded = set(sys.modules) - before
    assert not {"antigravity", "this", "tkinter", "turtle"} & loaded
    text = "\n".join(line for _, line in lines)
    # The docstring of heapq.heappush and the language reference on assertions.
    assert "Push item onto heap, maintaining the heap invariant." in text
    assert "Assert statements are a convenient way to insert debugging" in text
    assert len(text) > 1_000_000
    numbers = [document for document, _ in lines]
    assert sorted(set(numbers)) == list(range(numbers[-1] + 1))
    assert all(any(map(str.isalnum, line)) for _, line in lines)


def test_python_docs_order(tmp_path, monkeypatch):
    library = {
        "pydoc_data/topics.py": 'topics = {"a": "A topic\\n*****\\n\\nIts text."}',
        "zed.py": '"""Last."""\ndef f():\n    """Inner."""\nclass C:\n    "Third."',
        "alpha/__init__.py": '"""Wrapped\n\n    over\n    lines."""',
        "alpha/broken.py": "def",
        "site-packages/other.py": '"""Not ours."""',
        "test/test_x.py": '"""Not documentation."""',
    }
    for name, code in library.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(code)
    monkeypatch.setattr("sysconfig.get_paths", lambda: {"stdlib": str(tmp_path)})
    assert read("python-docs") == [
        (0, "A topic"),
        (0, "Its text."),
        (1, "Last."),
        (1, "Inner."),
        (1, "Third."),
        (2, "Wrapped"),
        (2, "over lines."),
    ]


class FakeBuilder:
    def __init__(self, features):
        self.info = types.SimpleNamespace(features=features)

    def download_and_prepare(self):
        pass

    def as_dataset(self, split, shuffle_files):
        assert (split, shuffle_files) == ("train[:1%]", False)
        return [{"text": b"one\n\ntwo"}, {"text": b"bad \xff"}, {"text": b"three"}]


def test_tfds_reads_the_text_feature(monkeypatch):
    fake = types.ModuleType("tensorflow_datasets")
    fake.as_numpy = iter
    fake.builder = {"wiki/1.en": FakeBuilder({"text": 0})}.__getitem__
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", fake)
    corpus = "tfds:wiki/1.en:train[:1%]"
    assert read(corpus, on_bad_bytes="skip") == [(0, "one"), (0, "two"), (1, "three")]
    with pytest.raises(CorpusError, match=r"example 1, byte 4 of the feature"):
        read(corpus)
    labels = FakeBuilder({"text": 0})
    labels.as_dataset = lambda split, shuffle_files: [{"text": np.int64(3)}]
    fake.builder = lambda name: labels
    with pytest.raises(CorpusError, match=r"example 0: the feature.*no string but"):
        read(corpus)
    assert read(corpus, on_bad_rows="skip") == []
    fake.builder = lambda name: FakeBuilder({"image": 0})
    with pytest.raises(CorpusError, match=r'no feature "text".*image'):
        read(corpus)
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    with pytest.raises(CorpusError, match=r"pip install -e '\.\[tfds\]'"):
        read(corpus)


@pytest.mark.parametrize("packed", ["", ".gz", ".xz", ".zst"])
def test_each_line_a_document(tmp_path, packed):
    path = compress(tmp_path / f"a.txt{packed}", TEXT.encode())
    found = read(path, documents="lines")
    assert found == [(0, "one"), (1, "two"), (2, "three")]
    with pytest.raises(ValueError, match="documents='line': pass one of blank_lines"):
        open_corpus(path, documents="line")


def test_a_long_line_is_one_document(tmp_path, monkeypatch):
    monkeypatch.setattr("keras_corrupt.data.sources._MAX_LINE_BYTES", 100)
    monkeypatch.setattr("keras_corrupt.files.text._BLOCK_BYTES", 30)
    (tmp_path / "a.txt").write_text("a\n" + "word " * 500 + "\nb\n")
    found = read(str(tmp_path), documents="lines")
    assert len(found) > 10 and [document for document, _ in found[-2:]] == [1, 2]
    assert {document for document, _ in found} == {0, 1, 2}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.symlink_to("nowhere"), r"x\.txt: cannot be read"),
        (lambda path: path.symlink_to("x.txt"), r"x\.txt: cannot be read.*symbolic"),
        (os.mkfifo, r"x\.txt: no file but a pipe"),
        (lambda path: path.symlink_to("/dev/zero"), r"x\.txt: no file but a pipe"),
        (lambda path: path.symlink_to("good.txt"), r"twice: .*good\.txt and .*x\.txt"),
    ],
)
@pytest.mark.parametrize("named", [".", "*.txt", "x.txt"])
def test_what_is_no_file_is_named(tmp_path, make, message, named):
    (tmp_path / "good.txt").write_text("x")
    make(tmp_path / "x.txt")
    corpus = [str(tmp_path / named), *[str(tmp_path / "good.txt")] * (named == "x.txt")]
    if "twice" in message:
        message = "twice"
    with pytest.raises(CorpusError, match=message):
        open_corpus(corpus)


def test_a_loop_of_folders_is_not_followed(tmp_path):
    (tmp_path / "good.txt").write_text("x")
    (tmp_path / "loop").symlink_to(tmp_path)
    assert read(str(tmp_path)) == [(0, "x")]


def test_a_file_named_in_two_ways(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(CorpusError, match=r"twice: .*a\.txt and .*\./a\.txt"):
        open_corpus([f"{tmp_path}/a.txt", f"{tmp_path}/./a.txt"])
