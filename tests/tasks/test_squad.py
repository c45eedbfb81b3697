import json
import sys
import types

import numpy as np
import pytest

from keras_corrupt.tasks.question_answering import Answer, Question
from keras_corrupt.tasks.squad import NOT_FOUND, SquadTask, json_rows, nearest

CONTEXT = "The red Kettle stood on a stove. The kettle was hot."


def question(identity, *answers, asked="What?", **others):
    gold = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": identity, "question": asked, "answers": gold, **others}


def article(*questions, context=CONTEXT):
    return {"title": "t", "paragraphs": [{"context": context, "qas": list(questions)}]}


def write(path, *articles):
    path.write_text(json.dumps({"version": "x", "data": list(articles)}))
    return path


@pytest.fixture
def directory(tmp_path):
    answers = question("t", ("a stove", 24))
    for version in ("1.1", "2.0"):
        write(tmp_path / f"train-v{version}.json", article(answers))
        write(tmp_path / f"dev-v{version}.json", article({**answers, "id": "d"}))
    return tmp_path


def task_of(directory, version, *questions):
    write(directory / f"dev-v{version}.json", article(*questions))
    return SquadTask(directory, version)


# === Metrics ===


def test_metrics_of_1_1_by_hand(directory):
    pytest.importorskip("official")
    questions = [
        question("a", ("red kettle", 4)),
        question("b", ("a stove", 24), ("stove", 26)),
        question("c", ("hot", 48)),
        question("d", ("The kettle was hot", 33)),
    ]
    task = task_of(directory, "1.1", *questions)
    answers = [Answer(t, 0, 0.0) for t in ("Red Kettle.", "on a stove", "", "was hot")]
    # a: equal once normalised. b: {on, stove} against {stove}: precision 1/2, recall
    # 1. c: nothing. d: {was, hot} against {kettle, was, hot}: precision 1, recall 2/3.
    f1 = (1 + 2 / 3 + 0 + 4 / 5) / 4
    found = task.metrics(answers, task.splits["dev"])
    assert found == pytest.approx({"f1": 100 * f1, "exact_match": 25.0})


def test_metrics_of_2_0_by_hand_and_by_the_official_script(directory):
    evaluate = pytest.importorskip("official.nlp.tools.squad_evaluate_v2_0").evaluate
    questions = [
        question("a", ("hot", 48), is_impossible=False),
        question("b", is_impossible=True),
        question("c", ("a stove", 24), is_impossible=False),
        question("d", is_impossible=True),
        question("e", ("kettle", 37), is_impossible=False),
    ]
    task = task_of(directory, "2.0", *questions)
    answers = [
        Answer("hot", 0, 0.0, null_odds=-3.0),
        Answer("red", 0, 0.0, null_odds=-1.0),
        Answer("on a stove", 0, 0.0, null_odds=-2.0),
        Answer("red", 0, 0.0, null_odds=4.0),
        Answer("Kettle", 0, 0.0, null_odds=2.0),
    ]
    # The model says: hot, red, on a stove, "", "".
    expected = {
        "f1": 100 * (1 + 0 + 2 / 3 + 1 + 0) / 5,
        "exact_match": 100 * 2 / 5,
        "answerable_f1": 100 * (1 + 2 / 3 + 0) / 3,
        "unanswerable_f1": 50.0,
        # By rising odds a, c, b, e, d: to answer a and c is as good as a, c, b, e,
        # and the first best one is kept.
        "best_f1": 100 * (1 + 2 / 3 + 2) / 5,
        "best_exact_match": 100 * (1 + 2) / 5,
        "best_f1_threshold": 100 / (1 + np.exp(2.0)),
    }
    found = task.metrics(answers, task.splits["dev"])
    assert found == pytest.approx(expected)

    data = json.loads((directory / "dev-v2.0.json").read_text())["data"]
    path = task.write_predictions(answers, "dev", directory / "out")
    said = json.loads(path.read_text())
    assert said == {"a": "hot", "b": "red", "c": "on a stove", "d": "", "e": ""}
    official = evaluate(data, said)
    names = ("f1", "exact", "HasAns_f1", "NoAns_f1")
    for name, ours in zip(names, expected.values(), strict=False):
        assert official[name] == pytest.approx(ours)
    odds = json.loads((directory / "out" / "squad20-dev-null_odds.json").read_text())
    assert odds == {"a": -3.0, "b": -1.0, "c": -2.0, "d": 4.0, "e": 2.0}
    texts = {k: a.text for k, a in zip("abcde", answers, strict=True)}
    assert evaluate(data, texts, odds)["final_f1"] == pytest.approx(found["best_f1"])


def test_answering_nothing_has_threshold_0(directory):
    pytest.importorskip("official")
    task = task_of(directory, "2.0", question("a"), question("b"))
    answers = [Answer("red", 0, 0.0, null_odds=-9.0)] * 2
    found = task.metrics(answers, task.splits["dev"])
    assert (found["f1"], found["best_f1"], found["best_f1_threshold"]) == (0, 100, 0)


def test_guesses(directory):
    pytest.importorskip("official")
    write(
        directory / "train-v1.1.json",
        article(question("x", ("red Kettle", 4)), question("y", ("hot", 48))),
        article(question("z", ("a stove", 24))),
    )
    task = task_of(directory, "1.1", question("a", ("The red Kettle", 0)))
    split = task.splits["dev"]
    guesses = task.guesses(split)
    assert [str(guess) for guess in guesses] == ["The red"]  # two words, the median
    # {red} against {red, kettle}.
    assert task.metrics(guesses, split)["f1"] == pytest.approx(100 * 2 / 3)

    questions = [question("a"), question("b"), question("c", ("hot", 48))]
    task = task_of(directory, "2.0", *questions)
    split = task.splits["dev"]
    found = task.metrics(task.guesses(split), split)
    assert found["f1"] == pytest.approx(100 * 2 / 3)
    assert found["answerable_f1"] == 0


# === Predictions ===


def test_predictions_of_1_1(directory, tmp_path):
    task = task_of(
        directory, "1.1", question("a", ("hot", 48)), question("ü", ("hot", 48))
    )
    answers = [Answer("the  Red", 0, 0.0), Answer("é", 0, 0.0)]
    path = task.write_predictions(answers, "dev", tmp_path / "new" / "out")
    assert json.loads(path.read_text("utf-8")) == {"a": "the  Red", "ü": "é"}
    assert [p.name for p in path.parent.iterdir()] == ["squad11-dev-predictions.json"]
    with pytest.raises(ValueError):
        task.write_predictions(answers[:1], "dev", tmp_path / "new" / "out")
    assert json.loads(path.read_text("utf-8")) == {"a": "the  Red", "ü": "é"}


# === Reading ===


def test_splits(directory):
    write(
        directory / "train-v2.0.json",
        article(
            question("a", ("kettle", 40), ("stove", 3), is_impossible=False),
            question("b", ("teapot", 4), is_impossible=False),
            question("c", is_impossible=True, plausible_answers=[{"text": "red"}]),
        ),
        article(question("f", ("teapot", 0), ("tea", 1)), context="some tea"),
    )
    write(directory / "test-v2.0.json", article({"id": "g", "question": "Why?"}))
    task = task_of(directory, "2.0", question("h", ("teapot", 4)), question("i"))
    train = task.splits["train"]
    # The nearest "kettle" in the same case; what is not there is left out.
    assert train.labels == [[("kettle", 37), ("stove", 26)], [], [("tea", 5)]]
    assert train.ids == ["a", "c", "f"]
    assert train.examples[2] == Question("What?", "some tea")
    file = directory / "train-v2.0.json"
    first = f"{file}, article 0, paragraph 0, question 1"
    assert train.skipped == {NOT_FOUND: (1, first)}
    # To leave questions out would change what the metrics mean.
    assert task.splits["dev"].labels == [[("teapot", 4)], []]
    assert task.splits["test"].labels is None and task.splits["test"].ids == ["g"]
    assert task.name == "squad20"
    assert task.model_arguments == {"answerability": True}


def test_explicit_files(directory):
    files = {
        "train": directory / "train-v1.1.json",
        "dev_easy": directory / "dev-v1.1.json",
    }
    task = SquadTask(files)
    assert {name: split.ids for name, split in task.splits.items()} == {
        "train": ["t"],
        "dev_easy": ["d"],
    }
    with pytest.raises(ValueError, match=r"needs a split `train`.*\['dev'\]"):
        SquadTask({"dev": files["dev_easy"]})
    with pytest.raises(ValueError, match="begins with `dev`.*'other'"):
        SquadTask({**files, "other": files["train"]})


def test_nearest():
    assert nearest("an", "an answer, an end", 9) == 11
    assert nearest("aa", "aaa", 5) == 1  # occurrences may overlap
    assert nearest("b", "aaa", 0) is None


def test_a_blank_answer_is_none_in_every_split(directory):
    pytest.importorskip("official")
    blank = [
        {**question("a"), "answers": [{"text": ""}]},
        question("b", (" ", 3), is_impossible=True),
        question("c", ("", 0), ("hot", 48), is_impossible=False),
    ]
    write(directory / "train-v2.0.json", article(*blank))
    task = task_of(directory, "2.0", *blank)
    for split in (task.splits["train"], task.splits["dev"]):
        assert split.labels == [[], [], [("hot", 48)]] and not split.skipped
    # The answer to two questions is "", and the third one's is wrong.
    answers = [Answer("", 0, 0.0, null_odds=1.0)] * 3
    found = task.metrics(answers, task.splits["dev"])
    assert found["unanswerable_f1"] == 100 and found["answerable_f1"] == 0
    with pytest.raises(ValueError, match="`is_impossible` is False, but it has 0 answ"):
        task_of(directory, "2.0", question("a", ("", 0), is_impossible=False))
    with pytest.raises(ValueError, match=r'no answer.*version="2.0"'):
        task_of(directory, "1.1", question("a", ("", 0)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not a JSON file"),
        ("[" * 100_000, "not a JSON file"),
        ("[]", "`data` must be there and a list; got None"),
        ('{"data": [{"title": "t"}]}', "article 0: `paragraphs` must be there"),
        ('{"data": [{"paragraphs": [7]}]}', "paragraph 0: `context` must .* a str"),
        ('{"data": []}', "split 'dev' has no question"),
        (article(7), "question 0: it is no JSON object"),
        (article(question(5)), "question 0: `id` must be there and a str; got 5"),
        (article(question("a", ("hot", "48"))), "`answer_start` must .* a int"),
        (article(question("a", ("hot", 48)), {"id": "b"}), "question 1: `question`"),
        (article(question("a", ("hot", 48)), context=" \n"), "its context is empty"),
        (
            article(*[question("a", ("hot", 48))] * 2),
            "1 and .*n 0 have one id, 'a'",
        ),
        (article(question("a")), r'no answer.*SQuAD 2.0.*version="2.0"'),
    ],
)
def test_malformed_files(directory, content, message):
    path = directory / "dev-v1.1.json"
    if isinstance(content, dict):
        write(path, content)
    else:
        path.write_text(content)
    with pytest.raises(ValueError, match=message):
        SquadTask(directory)


def test_contradictory_answerability(directory):
    with pytest.raises(ValueError, match="`is_impossible` is True, but it has 1 answ"):
        task_of(directory, "2.0", question("a", ("hot", 48), is_impossible=True))
    with pytest.raises(ValueError, match="`is_impossible` is False, but it has 0 answ"):
        task_of(directory, "2.0", question("a", is_impossible=False))


def test_missing_files(directory):
    (directory / "dev-v1.1.json").unlink()
    with pytest.raises(ValueError, match=r"lacks dev-v1\.1\.json; it has .*train-v2"):
        SquadTask(directory)
    with pytest.raises(ValueError, match="no directory"):
        SquadTask(directory / "nothing")
    with pytest.raises(FileNotFoundError, match="nothing.json is not a file"):
        list(json_rows(directory / "nothing.json"))
    with pytest.raises(ValueError, match=r"\('1.1', '2.0'\); got '2'"):
        SquadTask(directory, "2")


def test_tfds_has_the_same_rows_as_the_files(directory, monkeypatch):
    """Against the schema that TFDS documents for `squad/v2.0`."""
    answers = [("kettle", 37), ("kettle", 37)]
    file = task_of(
        directory, "2.0", question("a", *answers, asked="Wó?"), question("b")
    )

    def row(identity, asked, answers):
        return {
            "id": identity.encode(),
            "title": b"t",
            "context": CONTEXT.encode(),
            "question": asked.encode(),
            "is_impossible": np.bool_(not answers),
            "answers": {
                "text": np.array([text.encode() for text, _ in answers], object),
                "answer_start": np.array([start for _, start in answers], "int32"),
            },
            "plausible_answers": {
                "text": np.array([b"red"], object),
                "answer_start": np.array([4], "int32"),
            },
        }

    rows = {
        "train": [row("t", "What?", [("a stove", 24)])],
        "validation": [row("a", "Wó?", answers), row("b", "What?", [])],
    }

    class Builder:
        prepared = False

        def __init__(self, name):
            assert name == "squad/v2.0"

        def download_and_prepare(self):
            self.prepared = True

        def as_dataset(self, split, shuffle_files):
            assert self.prepared and not shuffle_files
            return rows[split]

    fake = types.ModuleType("tensorflow_datasets")
    fake.builder, fake.as_numpy = Builder, iter
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", fake)
    loaded = SquadTask("tfds:squad", "2.0")
    assert loaded.splits == file.splits


def test_missing_packages(directory, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    with pytest.raises(ImportError, match=r"pip install -e '\.\[tfds\]'"):
        SquadTask("tfds:squad")
    monkeypatch.setitem(sys.modules, "official.nlp.tools", None)
    task = SquadTask(directory)
    with pytest.raises(ImportError, match=r"pip install -e '\.\[squad\]'"):
        task.metrics([Answer("hot", 0, 0.0)], task.splits["dev"])
