"""Data sets of the Hugging Face Hub.

A stand-in for `datasets` tells what is asked of it; the library itself, where it is
installed, streams a directory, since what it asks of the hub differs by version.
"""

import json
import sys
import types

import pytest

from keras_corrupt.data.corpus import CorpusError, open_corpus
from keras_corrupt.data.prepare import prepare_dataset

TEXTS = ("one\n\ntwo", None, "three")
ROWS = [{"id": n, "text": text} for n, text in enumerate(TEXTS)]


class FakeRows:
    def __init__(self, rows, names=("id", "text")):
        self.rows, self.column_names = rows, names

    def select_columns(self, names):
        return FakeRows(self.rows, names)

    def __iter__(self):
        for row in self.rows:
            if isinstance(row, Exception):
                raise row
            yield {name: row[name] for name in self.column_names}


class FakeHub:
    """Stands for `datasets` and for `huggingface_hub`."""

    def __init__(self, monkeypatch):
        self.asked, self.revisions, self.sha, self.rows = [], [], "c0ffee", ROWS
        datasets = types.ModuleType("datasets")
        datasets.load_dataset = self.load_dataset
        monkeypatch.setitem(sys.modules, "datasets", datasets)
        asks = "huggingface_hub.HfApi.dataset_info"
        monkeypatch.setattr(asks, lambda api, *a, **k: self.info(*a, **k))

    def load_dataset(self, *names, streaming, **options):
        assert streaming
        self.asked.append((*names, options["split"], options["revision"]))
        return FakeRows(self.rows)

    def info(self, name, revision, timeout):
        self.revisions.append((name, revision))
        return types.SimpleNamespace(sha=revision or self.sha)


@pytest.fixture
def hub(monkeypatch):
    return FakeHub(monkeypatch)


def read(corpus, **options):
    (source,) = open_corpus(corpus, **options)
    return list(source.lines())


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("me/wiki", ("me/wiki", None, "train", "c0ffee")),
        ("me/wiki:en", ("me/wiki", "en", "train", "c0ffee")),
        ("me/wiki::test", ("me/wiki", None, "test", "c0ffee")),
        ("me/wiki@v2:en:test", ("me/wiki", "en", "test", "v2")),
    ],
)
def test_name_config_split_and_revision(hub, name, asked):
    documents = read(f"hf-datasets:{name}", on_bad_rows="skip")
    assert documents == [(0, "one"), (0, "two"), (1, "three")]
    assert hub.asked == [asked]


def test_a_bad_row_is_located(hub):
    with pytest.raises(
        CorpusError, match='me/wiki: row 2: the column "text" is no str'
    ):
        read("hf-datasets:me/wiki")
    with pytest.raises(CorpusError, match=r'no column "body" .*\[.id., .text.\]'):
        read("hf-datasets:me/wiki", text_column="body")


def test_the_revision_is_recorded_and_kept(hub, settings, tmp_path):
    words = [f"{a}{b}" for a in "bcdfg" for b in "aeiou"]
    hub.rows = [{"text": " ".join(words[n:] + words[:n]), "id": n} for n in range(25)]
    arguments = ["hf-datasets:me/wiki", tmp_path / "out"]
    info = prepare_dataset(*arguments, **settings)
    assert info.corpus == [{"name": "hf-datasets:me/wiki", "revision": "c0ffee"}]
    assert len(hub.revisions) == 1 and {asked[-1] for asked in hub.asked} == {"c0ffee"}
    # Examples that are there need no network, and stay when the hub has newer ones.
    hub.sha = "newer"
    assert prepare_dataset(*arguments, **settings) == info
    assert len(hub.revisions) == 1


def test_errors_of_the_hub(hub, monkeypatch):
    hub.rows = [ROWS[0], RuntimeError("connection lost\nat length")]
    with pytest.raises(CorpusError, match=r"after row 1: cannot be read \(connection"):
        read("hf-datasets:me/wiki")
    hub.info = lambda *a, **k: 1 / 0
    with pytest.raises(CorpusError, match="me/wiki: .*division.*NAME::SPLIT"):
        read("hf-datasets:me/wiki")
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(CorpusError, match=r"pip install -e '\.\[hf-datasets\]'"):
        read("hf-datasets:me/wiki@v1")


def test_a_directory_tells_whether_it_has_changed(tmp_path):
    (tmp_path / "wiki").mkdir()
    (tmp_path / "wiki" / "train.jsonl").write_text('{"text": "one"}')
    (source,) = open_corpus(f"hf-datasets:{tmp_path}/wiki")
    before = source.identity(), source.fingerprint(), source.size
    assert before[0]["bytes"] == before[2] == 15
    (tmp_path / "wiki" / "test.jsonl").write_text('{"text": "two"}')
    after = source.identity(), source.fingerprint(), source.size
    assert all(a != b for a, b in zip(after, before, strict=True))


def test_the_library_streams_a_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    pytest.importorskip("datasets")
    lines = [json.dumps({"body": text}) for text in ("one\n\ntwo", "three")]
    (tmp_path / "wiki").mkdir()
    (tmp_path / "wiki" / "train.jsonl").write_text("\n".join(lines))
    (tmp_path / "wiki" / "test.jsonl").write_text(lines[1])
    name = f"hf-datasets:{tmp_path}/wiki"
    found = read(name, text_column="body")
    assert found == [(0, "one"), (0, "two"), (1, "three")]
    assert read(f"{name}::test", text_column="body") == [(0, "three")]
    with pytest.raises(CorpusError, match="body"):
        read(name)
    with pytest.raises(CorpusError, match="cannot be read .*other"):
        read(f"{name}:other")
