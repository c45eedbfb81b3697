import errno
import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf

from keras_corrupt.data import prepare, prepared_directory
from keras_corrupt.data.chunks import read_chunks
from keras_corrupt.data.corpus import CorpusError, open_corpus
from keras_corrupt.data.info import DatasetError
from keras_corrupt.data.prepare import prepare_dataset
from keras_corrupt.data.splits import is_held_out
from keras_corrupt.files import lock
from keras_corrupt.tokenizers import KINDS, load


def content(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def token_lists(info, split):
    for shard in info.split(split).shards:
        for record in tf.data.TFRecordDataset(str(info.directory / shard.file)):
            features = tf.train.Example.FromString(record.numpy()).features.feature
            yield list(features["token_ids"].int64_list.value)


def test_every_token_of_the_corpus_is_in_the_examples(prepared, corpus):
    tokenizer = load(prepared.directory)
    expected = {"train": [], "validation": []}
    documents = {"train": set(), "validation": set()}
    words = {"train": 0, "validation": 0}
    for number, source in enumerate(open_corpus(corpus)):
        for document, line in source.lines():
            held_out = is_held_out(number, document, fraction=0.1, seed=0)
            split = "validation" if held_out else "train"
            documents[split].add((number, document))
            words[split] += len(line.split())
            expected[split] += tokenizer.encode(line)
    for name, tokens in expected.items():
        split = prepared.split(name)
        found = [
            token
            for ids in token_lists(prepared, name)
            for token in ids
            if token not in (tokenizer.classify_id, tokenizer.separate_id)
        ]
        assert found == tokens
        assert split.tokens == len(tokens)
        assert split.words == words[name]
        assert split.documents == len(documents[name])
        assert split.examples == sum(1 for _ in token_lists(prepared, name))
        assert split.examples == sum(shard.examples for shard in split.shards)
    counts = np.bincount(expected["train"], minlength=tokenizer.vocabulary_size)
    np.testing.assert_array_equal(prepared.unigrams(), counts)
    assert 4 <= prepared.validation.documents <= 20


def test_shards_are_sized_by_bytes(prepared):
    sizes = [shard.bytes for shard in prepared.train.shards]
    assert len(sizes) > 2
    assert all(20_000 <= size < 20_300 for size in sizes[:-1])
    for shard in prepared.train.shards:
        assert (prepared.directory / shard.file).stat().st_size == shard.bytes


def test_workers_do_not_change_the_result(prepared, corpus, settings, tmp_path):
    options = settings | {"workers": 2, "shard_bytes": 20_000}
    info = prepare_dataset(corpus, tmp_path / "examples", **options)
    assert content(info.directory) == content(prepared.directory)


def test_long_documents_are_cut_into_chunks(tmp_path):
    (tmp_path / "a.txt").write_text("first line\nsecond line\nthird\n\nother\n")
    (source,) = open_corpus(str(tmp_path))
    chunks = list(read_chunks(source, 3, chunk_bytes=15))
    assert [(chunk.source, chunk.index) for chunk in chunks] == [(3, 0), (3, 1)]
    # Number, whether it begins here, lines, bytes and words.
    assert [chunk.documents for chunk in chunks] == [
        [(0, True, 2, 21, 4)],
        [(0, False, 1, 5, 1), (1, True, 1, 5, 1)],
    ]
    assert [chunk.lines for chunk in chunks] == [
        ["first line", "second line"],
        ["third", "other"],
    ]


def test_held_out_share():
    share = np.mean([is_held_out(0, n, fraction=0.2, seed=1) for n in range(20_000)])
    assert share == pytest.approx(0.2, abs=0.01)


def test_a_second_call_does_nothing(corpus, settings, tmp_path, monkeypatch):
    options = settings | {"output": tmp_path / "examples"}
    first = prepare_dataset(corpus, **options)
    before = {p.name: p.stat().st_mtime_ns for p in first.directory.iterdir()}
    monkeypatch.setattr(prepare, "encode_chunks", None)
    assert prepare_dataset(corpus, **options | {"workers": 3}) == first
    assert before == {p.name: p.stat().st_mtime_ns for p in first.directory.iterdir()}


def test_differences_are_listed(write_corpus, settings, tmp_path):
    path = tmp_path / "a.txt"
    write_corpus(path)
    options = settings | {"output": tmp_path / "examples"}
    prepare_dataset(str(path), **options)
    with pytest.raises(DatasetError) as error:
        prepare_dataset(str(path), **options | {"seed": 4, "sequence_length": 64})
    assert "seed: was 0, asked 4" in str(error.value)
    assert "sequence_length: was 32, asked 64" in str(error.value)
    assert "lowercase" not in str(error.value)
    assert "another output" in str(error.value)
    write_corpus(tmp_path / "b.txt")
    with pytest.raises(DatasetError, match=r"b\.txt: was not there"):
        prepare_dataset([str(path), str(tmp_path / "b.txt")], **options)
    path.write_text(path.read_text() + "more\n")
    with pytest.raises(DatasetError, match=r"a\.txt: changed(.|\n)*--data .*examples"):
        prepare_dataset(str(path), **options)


def test_a_corpus_is_known_by_its_content(write_corpus, settings, tmp_path):
    """Not by where it is and when it was written."""
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    for number, name in enumerate(("a.txt", "b.txt")):
        write_corpus(before / name, documents=20, seed=number)
    info = prepare_dataset(str(before), before / "examples", **settings)
    before.rename(after)
    os.utime(after / "a.txt", (0, 0))
    moved = prepare_dataset(str(after), after / "examples", **settings)
    assert moved.fingerprint == info.fingerprint
    (after / "b.txt").rename(after / "0.txt")  # is now the first
    with pytest.raises(DatasetError, match=r"0\.txt: was not there"):
        prepare_dataset(str(after), after / "examples", **settings)
    (after / "0.txt").rename(after / "b.txt")
    content = (after / "b.txt").read_text()
    (after / "b.txt").write_text(content[:-2] + content[-2].swapcase() + "\n")
    with pytest.raises(DatasetError, match=r"b\.txt: was not there"):
        prepare_dataset(str(after), after / "examples", **settings)


def test_what_is_left_out_is_recorded_and_shown(
    write_corpus, settings, tmp_path, monkeypatch, capsys
):
    from keras_corrupt.data.__main__ import main

    corpus, output = tmp_path / "corpus", tmp_path / "examples"
    corpus.mkdir()
    write_corpus(corpus / "a.txt", documents=30)
    (corpus / "b.jsonl").write_bytes(b'{"text": null}\n\xff\n{"text": "a"}\n{}\n')
    (corpus / "c.md").write_text("x")
    flags = ["--corpus", corpus, "--output", output, "--vocabulary_size", 120]
    flags += ["--sequence_length", 32, "--validation_fraction", 0.1]
    flags += ["--on_bad_bytes", "skip", "--on_bad_rows", "skip"]
    monkeypatch.setattr(sys, "argv", ["data", "prepare", *map(str, flags)])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    main()
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "-1"
    printed = capsys.readouterr().out
    assert f"  from {corpus}/a.txt, {corpus}/b.jsonl; left out: 1 files" in printed
    assert f".md (first: {corpus}/c.md), 1 lines that are not UTF-8, 2 rows" in printed
    recorded = json.loads((output / "dataset.json").read_text())
    assert recorded["left_out"] == {"files ending in .md": [1, str(corpus / "c.md")]}
    assert (recorded["skipped_lines"], recorded["skipped_rows"]) == (1, 2)
    assert recorded["settings"]["sequence_length"] == recorded["max_length"] == 32


def test_given_vocabulary(prepared, corpus, settings, tmp_path):
    vocabulary = prepared.directory / "vocab.txt"
    options = settings | {"vocabulary": vocabulary, "lowercase": False}
    info = prepare_dataset(corpus, tmp_path / "examples", **options)
    tokenizer = load(info.directory)
    assert tokenizer.vocabulary == vocabulary.read_text().split("\n")[:-1]
    assert tokenizer.lowercase is False
    assert info.tokenizer_fingerprint == tokenizer.fingerprint


@pytest.mark.parametrize("kind", ["byte_bpe", "unigram"])
def test_kinds_of_tokenizers(kind, corpus, settings, tmp_path):
    options = settings | {"tokenizer": kind, "vocabulary_size": 350}
    info = prepare_dataset(corpus, tmp_path / "a", **options)
    tokenizer = load(info.directory)
    assert tokenizer.kind == kind == info.settings["tokenizer"]
    assert info.tokenizer_fingerprint == tokenizer.fingerprint
    ids = next(token_lists(info, "train"))
    assert tokenizer.decode(ids).startswith("[CLS] ")
    assert prepare_dataset(corpus, tmp_path / "a", **options) == info
    with pytest.raises(DatasetError, match=f"tokenizer: was {kind!r}, asked 'wordp"):
        prepare_dataset(corpus, tmp_path / "a", **settings)
    # Its vocabulary, given, makes the same examples.
    given = options | {"vocabulary": info.directory / "tokenizer.json"}
    again = prepare_dataset(corpus, tmp_path / "b", **given)
    assert again.tokenizer_fingerprint == info.tokenizer_fingerprint
    for shard in info.train.shards:
        first, second = (i.directory / shard.file for i in (info, again))
        assert first.read_bytes() == second.read_bytes()


def test_given_tokenizers_are_what_is_asked_for(corpus, fails, tmp_path):
    KINDS["unigram"].train(["the cats"], 50, lowercase=False).save(tmp_path / "given")
    given = {"vocabulary": tmp_path / "given" / "tokenizer.json"}
    output = tmp_path / "examples"
    match = "lowercase=False, strip_accents=True. Pass these flags"
    fails(output, corpus, match, ValueError, **given, tokenizer="unigram")
    given["lowercase"] = False
    match = "one of tokenizer='unigram', not 'byte_bpe'"
    fails(output, corpus, match, ValueError, **given, tokenizer="byte_bpe")
    match = "language_neutral=True is no flag of tokenizer='byte_bpe'"
    neutral = {"language_neutral": True, "tokenizer": "byte_bpe"}
    fails(output, corpus, match, ValueError, **neutral)
    fails(output, corpus, "pass one of wordpiece", ValueError, tokenizer="bpe")


@pytest.fixture
def fails(settings):
    def check(output, corpus, match, error=DatasetError, **options):
        with pytest.raises(error, match=match):
            prepare_dataset(corpus, output, **settings | options)
        assert not list(output.parent.glob(".*.partial"))

    return check


def test_clear_errors_leave_nothing_behind(fails, corpus, tmp_path):
    output = tmp_path / "examples"
    (tmp_path / "a.txt").write_text("\n \n")
    (tmp_path / "bad.txt").write_bytes(b"good\n\xff\n")
    (tmp_path / "one.txt").write_text("only one document\n")
    fails(output, str(tmp_path / "a.txt"), "corpus is empty", ValueError)
    fails(output, str(tmp_path / "bad.txt"), "line 2, byte 5", CorpusError)
    fails(
        output,
        corpus,
        "--sequence_length 3 must be at least",
        ValueError,
        sequence_length=3,
    )
    match = "--validation_fraction 0 must be above 0"
    fails(output, corpus, match, ValueError, validation_fraction=0)
    fails(output, corpus, "--workers 0 must be at least 1", ValueError, workers=0)
    one = str(tmp_path / "one.txt")
    fails(output, one, "single document.*--documents lines")
    assert not output.exists()
    output.mkdir()
    (output / "thesis.doc").write_text("precious")
    fails(output, corpus, "exists and is no prepared data set")
    assert (output / "thesis.doc").read_text() == "precious"


def test_skipped_lines_are_counted(write_corpus, settings, tmp_path):
    path = tmp_path / "a.txt"
    write_corpus(path)
    path.write_bytes(path.read_bytes() + b"\xff\n\xfe\n")
    options = settings | {"on_bad_bytes": "skip"}
    assert prepare_dataset(str(path), tmp_path / "out", **options).skipped_lines == 2


def test_full_disk(fails, corpus, tmp_path, monkeypatch):
    def write(self, record):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(prepared_directory.ShardWriter, "write", write)
    fails(tmp_path / "examples", corpus, "disk is full.*Free space")
    assert list(tmp_path.iterdir()) == []


def test_a_killed_run_leaves_no_data_set(corpus, settings, tmp_path):
    output = tmp_path / "examples"
    partial = tmp_path / ".examples.partial"
    script = (
        "import time; from keras_corrupt.data import prepare, prepared_directory\n"
        "prepared_directory.ShardWriter.write = lambda *_: time.sleep(60)\n"
        f"prepare.prepare_dataset({corpus!r}, {str(output)!r}, **{settings!r})"
    )
    process = subprocess.Popen([sys.executable, "-c", script])
    try:
        deadline = time.monotonic() + 60
        while not (partial / "vocab.txt").exists():
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.05)
        with pytest.raises(DatasetError, match="being prepared by another process"):
            prepare_dataset(corpus, output, **settings)
        assert partial.exists()
    finally:
        process.kill()
        process.wait()
    assert not output.exists() and partial.exists()
    (partial / "leftover").write_text("x")
    info = prepare_dataset(corpus, output, **settings)
    assert os.listdir(tmp_path) == ["examples"]
    assert "leftover" not in os.listdir(info.directory)


def test_ctrl_c_ends_in_a_line(corpus, tmp_path, monkeypatch, capsys):
    from keras_corrupt.data.__main__ import main

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(prepare._Shards, "add", stop)
    flags = ["--corpus", corpus, "--output", str(tmp_path / "out")]
    flags += ["--vocabulary_size", "120", "--validation_fraction", "0.1"]
    monkeypatch.setattr(sys, "argv", ["data", "prepare", *flags])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 130
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "Stopped. Run the same command again: it begins anew."
    assert list(tmp_path.iterdir()) == []


def test_command_line(prepared, capsys, monkeypatch):
    from keras_corrupt.data.__main__ import main

    monkeypatch.setattr(sys, "argv", ["x", "show", str(prepared.directory)])
    main()
    printed = capsys.readouterr().out
    tokenizer = load(prepared.directory)
    first = next(token_lists(prepared, "train"))
    text = " ".join(
        line.split("): ")[1]
        for line in printed.split("example 1")[0].split("\n")
        if line.startswith("  segment")
    )
    assert text == tokenizer.decode(first)
    assert f"{prepared.train.examples:,} examples" in printed
    summary = ["x", "show", str(prepared.directory), "--examples", "0"]
    monkeypatch.setattr(sys, "argv", summary)
    main()
    assert capsys.readouterr().out == printed.partition("\nexample 0")[0]
    monkeypatch.setattr(sys, "argv", [*summary, "--preset", "tiny_en"])
    with pytest.raises(SystemExit, match="tiny_en.*no vocabulary, or another one"):
        main()
    monkeypatch.setattr(sys, "argv", ["x", "show", "x", "--unknown", "1"])
    with pytest.raises(SystemExit) as error:
        main()
    assert error.value.code == 2
    monkeypatch.setattr(sys, "argv", ["x", "show", "nowhere"])
    with pytest.raises(SystemExit, match="nowhere: holds no dataset.json"):
        main()


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (".", "is the current directory"),
        ("file/under", "file/under'.*Not a directory"),
        ("x" * 300, "File name too long"),
        ("x" * 250, "File name too long"),
        ("file", "exists and is no prepared data set"),
    ],
)
def test_outputs_that_cannot_be(
    output, message, corpus, settings, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    if output != ".":
        (tmp_path / "file").write_text("precious")
    before = list(tmp_path.iterdir())
    with pytest.raises(DatasetError, match=rf"output='.*{message}") as error:
        prepare_dataset(corpus, output, **settings)
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == before


def test_an_output_may_be_a_link(corpus, settings, tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to("far")
    prepare_dataset(corpus, tmp_path / "link", **settings)
    assert (tmp_path / "far" / "dataset.json").exists()
    monkeypatch.setattr(os.path, "ismount", lambda path: True)
    with pytest.raises(DatasetError, match="is a mount point"):
        prepare_dataset(corpus, tmp_path / "disk", **settings)


@pytest.mark.parametrize("size", [99_999_999_999, 0, -1])
@pytest.mark.parametrize("kind", KINDS)
def test_sizes_that_no_vocabulary_has(size, kind, fails, corpus, tmp_path):
    options = {"tokenizer": kind, "vocabulary_size": size}
    match = f"--vocabulary_size {size} must be at least 1"
    fails(tmp_path / "out", corpus, match, ValueError, **options)
    with pytest.raises(ValueError, match=f"vocabulary_size={size}: pass a number up"):
        KINDS[kind].train(["text"], size)


def test_where_there_are_no_locks_it_prepares_as_well(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "fcntl", None)
    with prepared_directory.new_directory(tmp_path / "examples") as partial:
        (partial / "info.json").write_text("{}")
    assert os.listdir(tmp_path / "examples") == ["info.json"]
    assert os.listdir(tmp_path) == ["examples"]
