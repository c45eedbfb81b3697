"""`keras-corrupt predict` says what the models' `predictions` say."""

import csv
import io
import json

import numpy as np
import pytest

from keras_corrupt.cli import predict
from keras_corrupt.cli.rows import writer
from keras_corrupt.downstream import MultiLabelClassifier, TextClassifier
from tests.cli.conftest import CASES, RAW, texts

#: What a file has of a prediction, by the answer's first entries.
READ = {
    ("label",): lambda row: row["label"],
    ("score",): lambda row: row["score"],
    ("labels",): lambda row: row["labels"],
    ("words", "tags"): lambda row: row["tags"],
    ("words", "heads"): lambda row: list(
        map(tuple, zip(row["heads"], row["relations"], strict=True))
    ),
    ("answer",): lambda row: row["answer"],
    ("translation",): lambda row: row["translation"],
    ("vector",): lambda row: row["vector"],
    ("cosine",): lambda row: row["cosine"],
}


def prediction_in(row):
    (read,) = [
        read for names, read in READ.items() if tuple(row)[: len(names)] == names
    ]
    return read(row)


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Returns a function that runs the command with a model that is made."""
    monkeypatch.chdir(tmp_path)

    def run(model, *arguments, stdin=None, task=None):
        monkeypatch.setattr(predict, "load", lambda *_: model.answering(task))
        monkeypatch.setattr("sys.argv", ["predict", "model", *arguments])
        if stdin is not None:
            wrapper = io.TextIOWrapper(io.BytesIO(stdin), "ascii")
            monkeypatch.setattr("sys.stdin", wrapper)
        predict.main()
        return capsys.readouterr().out

    return run


def json_lines(text):
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize(("kind", "task"), CASES)
def test_a_file_has_the_predictions(kind, task, made, run, tmp_path):
    """Whatever the size of a batch, on which the last digit of a float may depend."""
    model, examples = made(kind), RAW[kind][task]
    answering = model.answering(task)
    with open("rows.jsonl", "w") as file:
        for example in examples:
            cells = example if isinstance(example, tuple) else [example]
            row = dict(zip(answering.columns, cells, strict=False))
            file.write(json.dumps(row) + "\n")
    expected = model.predictions(examples if task is None else {task: examples})
    if task is not None:
        expected = expected[task]
    for batch_size in ("2", "64"):
        rows = json_lines(
            run(model, "rows.jsonl", "--batch_size", batch_size, task=task)
        )
        assert len(rows) == len(examples) > 0
        for row, prediction in zip(rows, expected, strict=True):
            found = prediction_in(row)
            if isinstance(prediction, float | np.ndarray):
                np.testing.assert_allclose(found, prediction, atol=1e-5)
            else:
                assert found == (str(prediction) if task == "places" else prediction)


def test_probabilities_are_the_models(made, run):
    model = made("several").part("animals")
    texts = RAW["several"]["animals"]
    rows = json_lines(run(model, stdin="\n".join(texts).encode()))
    expected = model.probabilities(texts)
    found = [[row["probabilities"][label] for label in model.labels] for row in rows]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert [row["probability"] for row in rows] == [max(row) for row in found]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", '\ufeffid,text\r\n1,"the ""cat"",\nsat"\r\n2,日本\r\n'),
        ("a.tsv", 'id\ttext\n1\tthe "cat",\n\n2\t日本'),
        (
            "a.jsonl",
            '{"id": 1, "text": "the \\"cat\\",\\nsat"}\n\n{"id":2,"text":"日本"}',
        ),
    ],
)
def test_a_table_is_read_whatever_stands_in_it(name, content, made, run, tmp_path):
    (tmp_path / name).write_text(content, "utf-8", newline="")
    model = made("multi_label")
    rows = json_lines(run(model, name, "--keep", "id", "text"))
    texts = ['the "cat",' + "\nsat" * (name != "a.tsv"), "日本"]
    assert [row["text"] for row in rows] == texts
    assert [str(row["id"]) for row in rows] == ["1", "2"]
    assert [row["labels"] for row in rows] == model.predictions(texts)


def test_columns_that_nobody_reads_may_have_one_name(made, run, tmp_path):
    (tmp_path / "a.csv").write_text("text,,\nthe cat,,\n")
    model = made("multi_label")
    (row,) = json_lines(run(model, "a.csv"))
    assert row["labels"] == model.predictions(["the cat"])[0]


def test_each_line_has_an_answer(made, run):
    """An empty one, too; not what follows the last line's end."""
    model = made("multi_label")
    rows = json_lines(run(model, stdin="\ufeffthe cat\r\n\r\na dog\n日本".encode()))
    expected = model.predictions(["the cat", "", "a dog", "日本"])
    assert [row["labels"] for row in rows] == expected


@pytest.mark.parametrize(
    ("kind", "answer"), [(TextClassifier, "label"), (MultiLabelClassifier, "labels")]
)
def test_a_model_of_pairs_asks_for_both_texts(kind, answer, run, tmp_path):
    model = texts(kind, labels=["x", "y"], pairs=True)
    with pytest.raises(SystemExit, match="reads text, second_text, and a line is one"):
        run(model, stdin=b"the cat")
    (tmp_path / "a.csv").write_text("text\nthe cat\n")
    with pytest.raises(SystemExit, match="there is no column 'second_text'"):
        run(model, "a.csv")
    (tmp_path / "a.csv").write_text("text,second_text\nthe cat,a dog\n")
    for pairs, example in [(True, ("the cat", "a dog")), (False, "the cat")]:
        model = texts(kind, labels=["x", "y"], pairs=pairs)
        (row,) = json_lines(run(model, "a.csv"))
        assert row[answer] == model.predictions([example])[0]


def test_a_tagger_reads_sentences_with_a_word_in_each_line(made, run, tmp_path):
    model = made("several").part("words")
    (tmp_path / "a.conll").write_text("the DT\ncat NN\n\na DT\ndog NN\n")
    (tmp_path / "b.conllu").write_text("the\ncat\n\na\ndog\n")
    sentences = [["the", "cat"], ["a", "dog"]]
    for name in ("a.conll", "b.conllu"):
        rows = json_lines(run(model, name))
        assert [row["words"] for row in rows] == sentences
        assert [row["tags"] for row in rows] == model.predictions(sentences)
    with pytest.raises(SystemExit, match="for models that read words"):
        run(made("multi_label"), "a.conll")
    (tmp_path / "a.conll").write_text("1\tthe\n2\tcat\n\n1\ta\n2\tdog\n")
    rows = json_lines(run(model, "a.conll", "--columns", "1"))
    assert [row["words"] for row in rows] == sentences
    (tmp_path / "a.conll").write_text("the DT\ncat\n\na DT\n\n\tDT\n")
    with pytest.raises(SystemExit, match=r"a row that lacks its word \(first.*Mend"):
        run(model, "a.conll")


def test_a_cell_without_a_text_is_an_empty_one(made, run, tmp_path):
    """As in fine-tuning: see `files.tables.as_text`."""
    model = made("multi_label")
    (tmp_path / "a.jsonl").write_text('{"text": null}\n{"text": 7}\n')
    rows = json_lines(run(model, "a.jsonl"))
    assert [row["labels"] for row in rows] == model.predictions(["", "7"])


def test_csv_has_a_column_for_each_probability(made, run, tmp_path):
    model = made("several").part("animals")
    content = b'7,"the cat"\n8,a dog\n'
    run(
        model, "--format", "csv", "--columns", "1", "--keep", "0",
        "--output", "out.csv", stdin=content,
    )  # fmt: skip
    header, *rows = csv.reader(io.StringIO((tmp_path / "out.csv").read_text()))
    assert header == [
        "0", "label", "probability", "probabilities.cat", "probabilities.dog",
    ]  # fmt: skip
    assert [row[0] for row in rows] == ["7", "8"]
    assert [row[1] for row in rows] == model.predictions(["the cat", "a dog"])


def test_rows_of_a_csv_have_the_first_ones_columns():
    file = io.StringIO()
    write = writer(file, "csv")
    write({"id": 1, "meta": {"a": 2, "b": 3}})
    write({"meta": {"b": 4}, "id": 5})
    assert file.getvalue() == "id,meta.a,meta.b\n1,2,3\n5,,4\n"
    with pytest.raises(ValueError, match="has a column 'score', which the first one"):
        write({"id": 6, "score": 0.5})


def test_a_bad_row_leaves_no_file(made, run, tmp_path):
    model = made("several").part("places")
    good = '{"question": "where", "context": "the cat sat"}\n'
    for bad, message in {
        "{": "rows.jsonl:3: something else than a JSON object. Mend the row",
        '{"question": "where"}': "rows.jsonl:3: there is no column 'context'; the "
        "columns are 'question'. The model reads question, context: name",
        '{"question": "where", "context": [5]}': "rows.jsonl:3: `context` must be a s",
        '{"question": "where", "context": " "}': "rows.jsonl:3: .*without any text",
    }.items():
        (tmp_path / "rows.jsonl").write_text(good + good + bad)
        with pytest.raises(SystemExit, match=f"^Error: {message}"):
            run(model, "rows.jsonl", "--output", "out.jsonl")
        assert [path.name for path in tmp_path.iterdir()] == ["rows.jsonl"]


def test_what_cannot_be_answered_is_said(made, run, tmp_path):
    spans = made("several").part("places")
    with pytest.raises(SystemExit, match="reads question, context, and a line is one"):
        run(spans, stdin=b"where")
    with pytest.raises(SystemExit, match="standard input:2 is not UTF-8"):
        run(made("multi_label"), stdin=b"a\n\xff\n")
    with pytest.raises(SystemExit, match="name the task to do, one of animals, length"):
        run(made("several"), stdin=b"a")
    with pytest.raises(SystemExit, match="Unknown task 'x'; the model's are"):
        run(made("several"), stdin=b"a", task="x")
    with pytest.raises(SystemExit, match="'x' is named, but this MultiLabel"):
        run(made("multi_label"), stdin=b"a", task="x")
    with pytest.raises(SystemExit, match="--columns a b c: the model reads text, sec"):
        run(made("multi_label"), "--columns", "a", "b", "c", stdin=b"a")
    (tmp_path / "a.csv").write_text("text,labels\na,b\n")
    with pytest.raises(SystemExit, match="--columns 0: a line of text has no columns"):
        run(made("multi_label"), "--columns", "0", stdin=b"a")
    with pytest.raises(SystemExit, match="--keep labels: the answer has a column"):
        run(made("multi_label"), "a.csv", "--keep", "labels")
    with pytest.raises(SystemExit, match="--output no/x: there is no directory no"):
        run(made("multi_label"), "a.csv", "--output", "no/x")
    (tmp_path / "answers").mkdir()
    with pytest.raises(SystemExit, match="--output answers is a directory"):
        run(made("multi_label"), "a.csv", "--output", "answers")
    with pytest.raises(SystemExit, match="a.csv.gz: answers are written as they are"):
        run(made("multi_label"), "a.csv", "--output", "a.csv.gz")
    with pytest.raises(SystemExit, match="--output a.csv is the file to read"):
        run(made("multi_label"), "a.csv", "--output", "a.csv")
    (tmp_path / "a.json").write_text('{"text": "a"}\n')
    with pytest.raises(SystemExit, match="The name of a.json does not tell its form"):
        run(made("multi_label"), "a.json")
    (tmp_path / "b.csv").write_text("text,text\na,b\n")
    with pytest.raises(SystemExit, match="b.csv:1: two columns are named 'text'"):
        run(made("multi_label"), "b.csv")


def test_a_saved_model_answers_and_a_pretrained_one_does_not(made, tmp_path):
    model = made("several").part("animals")
    model.save_to_preset(tmp_path / "preset")
    answering = predict.load(tmp_path / "preset")
    assert answering.answer(["the cat"]) == model.answering().answer(["the cat"])
    with pytest.raises(ValueError, match="tiny_en: Electra answers no rows"):
        predict.load("tiny_en")


def test_rows_come_as_soon_as_a_batch_is_full(made, monkeypatch, capsys):
    """So memory holds a batch, and what follows a pipe does not wait for its end."""
    printed = []

    class Pipe(io.BytesIO):
        def read1(self, size):
            printed.append(capsys.readouterr().out)
            return self.readline()

    monkeypatch.setattr(predict, "load", lambda *_: made("multi_label").answering())
    monkeypatch.setattr("sys.argv", ["predict", "model", "--batch_size", "2"])
    stdin = type("Stdin", (), {"buffer": Pipe(b"a\nb\nc\n")})
    monkeypatch.setattr("sys.stdin", stdin)
    predict.main()
    printed.append(capsys.readouterr().out)
    assert [text.count("\n") for text in printed] == [0, 0, 2, 0, 1]


def test_it_ends_quietly_where_nobody_reads_on(made, run, monkeypatch, tmp_path):
    class Closed(io.StringIO):
        def __init__(self, file):
            super().__init__()
            self.fileno = file.fileno

        def write(self, text):
            raise BrokenPipeError

    with open(tmp_path / "file", "w") as file:
        monkeypatch.setattr("sys.stdout", Closed(file))
        with pytest.raises(SystemExit) as end:
            run(made("multi_label"), stdin=b"a\n")
    assert end.value.code == 141
