"""Text of users is opened and cut into lines in one way."""

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_corrupt.cross_view.tasks.dependencies import read_dependencies
from keras_corrupt.cross_view.tasks.translation import read_parallel
from keras_corrupt.cross_view.text.word_vectors import read_word_vectors
from keras_corrupt.data.corpus import open_corpus
from keras_corrupt.files import text as module
from keras_corrupt.files.streams import input_lines
from keras_corrupt.files.text import byte_lines, read_text, split_lines, text_lines
from keras_corrupt.scoring.minimal_pairs import read_pairs
from keras_corrupt.scoring.reranking import read_n_best
from keras_corrupt.tasks.conll import read_conll
from keras_corrupt.tasks.squad import json_rows
from keras_corrupt.tasks.tables import Columns, read_table
from keras_corrupt.tasks.task_files import read_task_file
from keras_corrupt.tokenizers.reading import read_vocabulary

ROW = "1\t{}\t_\tX\t_\t_\t0\troot\t_\t_\n"
CONLLU = f"# a\n{ROW.format('Tom')}\n{ROW.format('sees')}"
PAIR = {"sentence_good": "a", "sentence_bad": "b", "UID": "c", "field": "d"}
LISTS = {name: {"ref": "x", "hyp_1": {"text": "x y", "score": 1}} for name in "ab"}
SQUAD = {"data": [{"paragraphs": [{"context": "c", "qas": [{"id": "1"}]}]}]}
TASK = '[a]\nkind = "text"\ntrain = "train.tsv"\n'

#: Name of a file, its text, what reads it, and what that is to give.
READERS = {
    "corpus.txt": (
        "one\ntwo\n\nthree\n",
        lambda path: [pair for source in open_corpus(path) for pair in source.lines()],
        [(0, "one"), (0, "two"), (1, "three")],
    ),
    "corpus.jsonl": (
        '{"text": "a\\rb"}\n{"text": "c"}\n',
        lambda path: [pair for source in open_corpus(path) for pair in source.lines()],
        [(0, "a"), (0, "b"), (1, "c")],
    ),
    "vocab.txt": ("[PAD]\nthe\n##s\n", read_vocabulary, ["[PAD]", "the", "##s"]),
    "words.conll": (
        "Tom B-PER\nsees O\n\nAnn B-PER\n",
        lambda path: read_conll(path).examples,
        [["Tom", "sees"], ["Ann"]],
    ),
    "trees.conllu": (
        CONLLU,
        lambda path: read_dependencies(path).examples,
        [["Tom"], ["sees"]],
    ),
    "table.tsv": (
        "text\tlabel\none\ta\ntwo\tb\n",
        lambda path: read_table(path, Columns("text", label="label")).examples,
        ["one", "two"],
    ),
    "table.csv": (
        'text,label\n"one\nmore",a\ntwo,b\n',
        lambda path: read_table(path, Columns("text", label="label")).examples,
        ["one\nmore", "two"],
    ),
    "table.jsonl": (
        '{"text": "one", "label": "a"}\n{"text": "two", "label": "b"}\n',
        lambda path: read_table(path, Columns("text", label="label")).examples,
        ["one", "two"],
    ),
    "sentences.en": (
        "One more.\nTwo.\n",
        lambda path: read_parallel(path, path).labels,
        ["One more.", "Two."],
    ),
    "squad.json": (
        json.dumps(SQUAD, indent=1),
        lambda path: [row for _, row in json_rows(path)],
        [{"id": "1", "context": "c"}],
    ),
    "tasks.toml": (
        TASK,
        lambda path: [len(task.splits["train"]) for task in read_task_file(path)],
        [2],
    ),
    "lists.json": (
        json.dumps(LISTS, indent=1),
        lambda path: [(n.utterance, n.texts) for n in read_n_best(path)],
        [("a", ["x y"]), ("b", ["x y"])],
    ),
    "pairs.jsonl": (
        f"{json.dumps(PAIR)}\n{json.dumps(PAIR)}\n",
        lambda path: [tuple(pair) for pair in read_pairs([path])],
        [("a", "b", "c", "d")] * 2,
    ),
    "vectors.txt": (
        "the 1 2\nof 3 4\n",
        lambda path: {
            word: vector.tolist()
            for word, vector in read_word_vectors(path, ["the", "of"], 2).items()
        },
        {"the": [1, 2], "of": [3, 4]},
    ),
}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("name", READERS)
def test_all_readers_read_alike(tmp_path, name, mark, end):
    text, read, expected = READERS[name]
    (tmp_path / "train.tsv").write_text("text\tlabel\nx\ta\ny\tb\nz\ta\n")
    path = tmp_path / name
    path.write_bytes((mark + text).replace("\n", end).encode())
    assert read(str(path)) == expected


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_standard_input_is_read_alike(monkeypatch, end):
    content = f"\ufeffone\x0ctwo{end}a\u2028b\x85c{end}".encode()
    stdin = io.TextIOWrapper(io.BytesIO(content), "ascii", newline="\n")
    monkeypatch.setattr("sys.stdin", stdin)
    assert [*input_lines()] == [(1, "one\x0ctwo"), (2, "a\u2028b\x85c")]


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(st.text(alphabet="ab é\r\n\x0b\x0c\x1c\x85\u2028\ufeff", max_size=40))
def test_lines_are_those_of_python(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "lines.txt"
    path.write_bytes(text.encode())
    with open(path, encoding="utf-8-sig", newline=None) as file:
        expected = [line.removesuffix("\n") for line in file]
    data = path.read_bytes()
    for size in (1, 2, 5, 1000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "_BLOCK_BYTES", size)
            found = list(byte_lines(path))
        assert [line.decode() for _, _, line in found] == expected
        assert [number for number, _, _ in found] == [*range(1, len(expected) + 1)]
        for _, offset, line in found:
            assert data[offset : offset + len(line)] == line
    assert [line for _, line in text_lines(path)] == expected
    assert split_lines(data.decode("utf-8-sig")) == expected
    assert read_text(path) == "".join(f"{line}\n" for line in expected)


def test_errors_name_file_line_and_byte(tmp_path):
    path = tmp_path / "f.txt"
    path.write_bytes("\ufeffone\r\n".encode() + b"tw\xffo\n")
    with pytest.raises(ValueError, match=r"f.txt:2 is not .* byte 10 is b'\\xff'"):
        list(text_lines(path))
    assert [*text_lines(path, "surrogateescape")][1] == (2, "tw\udcffo")
    with pytest.raises(FileNotFoundError, match="none is not a file"):
        read_text(tmp_path / "none")
    path = tmp_path / "f.txt.xz"
    path.write_bytes(b"one\n")
    with pytest.raises(ValueError, match=r"f.txt.xz is damaged or cut short"):
        read_text(path)
