"""Tasks of one's own, named in a TOML file."""

import json

import pytest

from keras_corrupt.tasks.task_files import read_task_file

TOML = """
[reviews]
kind = "text"
train = "data/reviews.csv"
text = "review"
label = "stars"
dev_fraction = 0.25

[scores]
kind = "text"
train = "data/reviews.csv"
text = "review"
label = "points"
regression = true
score_range = [0, 10]

[chunks]
kind = "tagging"
train = "chunks.txt"
dev = "chunks.txt"
scheme = "bioes"

[wh]
kind = "questions"
train = "squad.json"
dev = "squad.json"
"""
CONTEXT = "the cat sat on the mat"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data").mkdir()
    rows = ["review,stars,points"]
    rows += [f"the {word},{word},{i}" for i, word in enumerate(["good", "bad"] * 4)]
    (tmp_path / "data" / "reviews.csv").write_text("\n".join(rows))
    lines = ["cat B-NP", "sat O", "", "dog B-NP", "ran O", ""]
    (tmp_path / "chunks.txt").write_text("\n".join(lines))
    answer = {"text": "the mat", "answer_start": 15}
    question = {"id": "1", "question": "where ?", "answers": [answer]}
    paragraph = {"context": CONTEXT, "qas": [question]}
    data = {"data": [{"title": "t", "paragraphs": [paragraph]}]}
    (tmp_path / "squad.json").write_text(json.dumps(data))
    (tmp_path / "tasks.toml").write_text(TOML)
    return tmp_path


def test_files_and_columns_are_those_that_it_names(folder):
    reviews, scores, chunks, questions = read_task_file(folder / "tasks.toml")
    assert [t.name for t in (reviews, scores, chunks, questions)] == [
        *("reviews", "scores", "chunks", "wh")
    ]
    assert (len(reviews.splits["train"]), len(reviews.splits["dev"])) == (6, 2)
    assert reviews.model_arguments["labels"] == ["bad", "good"]
    assert scores.model_arguments["score_range"] == [0, 10]
    assert scores.main_metric == "spearman"
    assert chunks.splits["dev"].labels[0] == ["S-NP", "O"]
    assert questions.splits["train"].examples[0].context == CONTEXT
    assert [t.kind for t in (chunks, questions)] == ["tagging", "span_extraction"]


@pytest.mark.parametrize(
    "text, message",
    [
        ("[a", "is not a TOML file"),
        ("", "names no task"),
        ("a = 1", r"\[a\] must be a table"),
        ('[a]\nkind = "image"', r"\[a\]: `kind` must be one of .*got 'image'"),
        ('[a]\nkind = "text"\ntrian = "x"', r"\[a\] has 'trian'; a task of the kind"),
        ('[a]\nkind = "text"', r"\[a\] must name the file .* as `train`"),
        ('["a/b"]\nkind = "text"', "without a slash; got 'a/b'"),
        (
            '[a]\nkind = "text"\ntrain = "data/reviews.csv"\ntext = "x"\nlabel="stars"',
            r"\[a\]: .*has no column 'x'",
        ),
        (
            '[a]\nkind = "tagging"\ntrain = "chunks.txt"\ntag_column = 7',
            r"\[a\]: `files` needs a 'train' and a 'dev'",
        ),
        (
            '[a]\nkind = "questions"\ntrain = "squad.json"\ndev = "squad.json"\n'
            'version = "3"',
            r"\[a\]: `version` must be one of",
        ),
        ('[a]\nkind = "text"\ntrain = "data/reviews.csv"\n[a]', "not a TOML file"),
        (
            '[a]\nkind = "text"\ntrain = "data/reviews.csv"\nlabels = [0, 1]',
            r'\[a\]: `labels` must be strings, such as "0"',
        ),
        (
            '[a]\nkind = "text"\ntrain = "data/reviews.csv"\nscore_range = [1]',
            r"\[a\]: `score_range` must be two numbers; got \[1\]",
        ),
        ('[a]\nkind = "text"\ntrain = 3', r"\[a\]: `train` must be the path of a file"),
    ],
)
def test_errors_name_the_task(folder, text, message):
    (folder / "tasks.toml").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_task_file(folder / "tasks.toml")


def test_files_that_are_not_there(folder):
    (folder / "tasks.toml").write_text('[a]\nkind = "text"\ntrain = "no.csv"')
    with pytest.raises(FileNotFoundError, match="no.csv is not a file"):
        read_task_file(folder / "tasks.toml")
    with pytest.raises(FileNotFoundError, match="none.toml is not a file"):
        read_task_file(folder / "none.toml")
