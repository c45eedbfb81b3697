"""Corpora whose rows are documents: CSV, TSV, JSON lines, Parquet and Arrow."""

import gzip
import json
import sys

import hypothesis
import pytest
from hypothesis import strategies as st

from keras_corrupt.data.corpus import CorpusError, open_corpus
from keras_corrupt.data.prepare import prepare_dataset

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

TEXTS = ['one, "1"\n\ntwo', " \n", "three"]
DOCUMENTS = [(0, 'one, "1"'), (0, "two"), (1, "three")]


def read(corpus, **options):
    return [
        pair for source in open_corpus(corpus, **options) for pair in source.lines()
    ]


def write_csv(path, texts, column="text"):
    cells = ['"' + text.replace('"', '""') + '"' for text in texts]
    rows = [f"{number},{cell},x" for number, cell in enumerate(cells)]
    content = "\n".join([f"id,{column},y", *rows]) + "\n"
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", encoding="utf-8") as file:
        file.write(content)


def write_json_lines(path, texts, column="text"):
    path.write_text("".join(json.dumps({column: text}) + "\n" for text in texts))


def table(texts, column="text", kind=None):
    ids = pyarrow.array(range(len(texts)))
    texts = pyarrow.array(texts, kind or pyarrow.string())
    return pyarrow.table({"id": ids, column: texts})


def write_parquet(path, texts, column="text"):
    parquet.write_table(table(texts, column), path, row_group_size=2)


def write_arrow(path, texts, column="text", make=pyarrow.ipc.new_file):
    written = table(texts, column)
    with make(path, written.schema) as writer:
        writer.write_table(written, max_chunksize=2)


def write_stream(path, texts, column="text"):
    write_arrow(path, texts, column, pyarrow.ipc.new_stream)


WRITERS = {
    "a.csv": write_csv,
    "a.csv.gz": write_csv,
    "A.JSONL": write_json_lines,
    "a.parquet": write_parquet,
    "a.arrow": write_arrow,
    "stream.arrow": write_stream,
}
each = pytest.mark.parametrize("name", WRITERS)


@each
def test_each_row_is_a_document(tmp_path, name):
    WRITERS[name](tmp_path / name, TEXTS)
    assert read(str(tmp_path)) == DOCUMENTS
    WRITERS[name](tmp_path / name, TEXTS, "body")
    assert read(str(tmp_path), text_column="body") == DOCUMENTS
    with pytest.raises(CorpusError, match=f'{name}.* "text" .*body.*--text_column'):
        read(str(tmp_path))


def test_tsv_has_no_quotes(tmp_path):
    (tmp_path / "a.tsv").write_text('id\ttext\n1\tit is 5" long\n\n2\t"b\n')
    assert read(str(tmp_path)) == [(0, 'it is 5" long'), (1, '"b')]


@hypothesis.settings(max_examples=20, deadline=None)
@hypothesis.given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_all_formats_say_the_same(tmp_path_factory, texts):
    found = {}
    for name, write in WRITERS.items():
        folder = tmp_path_factory.mktemp("same")
        # A reader of text cannot tell these ends of lines in a cell.
        texts = [text.replace("\r", "\n").replace("\0", "") for text in texts]
        write(folder / name, texts)
        found[name] = read(str(folder))
    lines = [[line.strip() for line in text.split("\n")] for text in texts]
    documents = [[line for line in document if line] for document in lines]
    documents = [document for document in documents if document]
    expected = [(n, line) for n, lines in enumerate(documents) for line in lines]
    assert all(pairs == expected for pairs in found.values())


def bad_utf8():
    """A column with one text that is not UTF-8, as only other software writes it."""
    offsets = b"".join(n.to_bytes(4, "little") for n in (0, 4, 6, 10))
    buffers = [None, pyarrow.py_buffer(offsets), pyarrow.py_buffer(b"goodx\xfffine")]
    texts = pyarrow.Array.from_buffers(pyarrow.string(), 3, buffers)
    return pyarrow.table({"text": texts})


def test_bytes_that_are_not_utf8_are_located_or_skipped(tmp_path):
    (tmp_path / "a.csv").write_bytes(b'\xff,text\n1,good\n2,"x\xff\n"\n3\xff,fine\n')
    parquet.write_table(bad_utf8(), tmp_path / "b.parquet")
    for name, place in (("a.csv", "line 3"), ("b.parquet", "row 2")):
        path = str(tmp_path / name)
        with pytest.raises(CorpusError, match=rf"{name}: {place}, byte 1 .*xff.*skip"):
            read(path)
        (source,) = open_corpus(path, on_bad_bytes="skip")
        assert list(source.lines()) == [(0, "good"), (1, "fine")]
        assert source.skipped == {"lines": 1}


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "stream.arrow"])
def test_null_is_located_or_skipped(tmp_path, name):
    WRITERS[name](tmp_path / name, [*("a",) * 70, None, "b"])
    with pytest.raises(CorpusError, match="row 71: .* no string but null.*bad_rows"):
        read(str(tmp_path))
    (source,) = open_corpus(str(tmp_path), on_bad_rows="skip")
    assert len(list(source.lines())) == 71
    assert source.skipped == {"rows": 1}


def test_bad_csv_is_located_or_skipped(tmp_path):
    lines = ["id,text", "1,a", "2,b,c", '3,"d', 'e"f', "4,g"]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(CorpusError, match=r"a\.csv: line 3: another number of fields"):
        read(str(tmp_path))
    (source,) = open_corpus(str(tmp_path), on_bad_rows="skip")
    assert list(source.lines()) == [(0, "a"), (1, "g")]
    assert source.skipped == {"rows": 3}


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "stream.arrow"])
@pytest.mark.parametrize("damage", ["cut", "empty", "other"])
def test_damaged_files_are_errors(tmp_path, name, damage):
    path = tmp_path / name
    WRITERS[name](path, ["some text"] * 1000)
    data = path.read_bytes()
    path.write_bytes(
        {"cut": data[: len(data) // 2], "empty": b"", "other": b"x" * 99}[damage]
    )
    with pytest.raises(CorpusError, match=rf"{name}: after row \d+: .*damaged"):
        read(str(path))


def test_columns_without_text_and_named_twice_are_errors(tmp_path):
    parquet.write_table(table([3], kind=pyarrow.int64()), tmp_path / "a.parquet")
    with pytest.raises(CorpusError, match='column "text" has no text but int64'):
        read(str(tmp_path))
    (tmp_path / "a.parquet").unlink()
    (tmp_path / "a.tsv").write_text("text\ttext\n")
    with pytest.raises(CorpusError, match='two columns "text"'):
        read(str(tmp_path))


def test_kinds_of_text_columns(tmp_path):
    texts = table(TEXTS)["text"].combine_chunks()
    for kind in (pyarrow.large_string(), pyarrow.string_view()):
        written = pyarrow.table({"text": texts.cast(kind)})
        parquet.write_table(written, tmp_path / "a.parquet")
        assert read(str(tmp_path)) == DOCUMENTS
    written = pyarrow.table({"text": texts.dictionary_encode()})
    parquet.write_table(written, tmp_path / "a.parquet")
    assert read(str(tmp_path)) == DOCUMENTS


def test_without_pyarrow(tmp_path, monkeypatch):
    write_parquet(tmp_path / "a.parquet", TEXTS)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(CorpusError, match=r"pip install -e '\.\[parquet\]'"):
        read(str(tmp_path))


def examples(info):
    files = [shard.file for shard in (*info.train.shards, *info.validation.shards)]
    return {file: (info.directory / file).read_bytes() for file in files}


@each
def test_the_shards_are_the_same_from_all_formats_and_workers(
    tmp_path, name, corpus, settings
):
    documents = {}
    for number, line in read(corpus.replace("*", "a")):
        documents.setdefault(number, []).append(line)
    texts = ["\n".join(lines) for lines in documents.values()]
    (tmp_path / "a.txt").write_text("\n\n".join(texts))
    WRITERS[name](tmp_path / name, texts)
    (tmp_path / "vocab").mkdir()
    plain = prepare_dataset(str(tmp_path / "a.txt"), tmp_path / "plain", **settings)
    same = prepare_dataset(str(tmp_path / name), tmp_path / "same", **settings)
    assert examples(plain) == examples(same)
    settings = settings | {"workers": 2}
    several = prepare_dataset(str(tmp_path / name), tmp_path / "two", **settings)
    assert examples(plain) == examples(several)
    with pytest.raises(ValueError, match="text_column: was 'text', asked 'body'"):
        prepare_dataset(
            str(tmp_path / name), tmp_path / "same", **settings, text_column="body"
        )
