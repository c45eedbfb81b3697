"""The fine-tuning recipes, as `python RECIPE FLAGS` runs them, on small files."""

import collections
import csv
import json
import re
import runpy
from pathlib import Path

import pytest

from keras_corrupt.downstream.finetuner import Finetuner
from keras_corrupt.models import MaskedLM
from keras_corrupt.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer
from tests.conftest import SIZES
from tests.downstream.conftest import cats_and_dogs, preset  # noqa: F401

pytestmark = pytest.mark.usefixtures("eager")

ROOT = Path(__file__).parents[2]
RECIPES = sorted((ROOT / "recipes").glob("finetune_*.py"))


@pytest.fixture
def run(monkeypatch, tmp_path, preset):  # noqa: F811
    def run_recipe(path, *flags, **settings):
        quick = ["--seeds", "1", "--retries", "0", "--max_length", "24"]
        flags = ["--preset", preset, "--output", tmp_path / "out", *flags, *quick]
        flags.append("--settings")
        for name, value in ({"epochs": 1, "batch_size": 8} | settings).items():
            flags += [name, value]
        monkeypatch.setattr("sys.argv", [str(path), *map(str, flags)])
        runpy.run_path(str(path), run_name="__main__")
        return json.loads((tmp_path / "out" / "results.json").read_text())

    return run_recipe


def recipe(name):
    return ROOT / "recipes" / f"finetune_{name}.py"


def write_table(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="") as file:
        csv.writer(file, delimiter="\t").writerows(rows)


@pytest.mark.usefixtures("graphs")
def test_glue(run, tmp_path, capsys):
    for seed, name in enumerate(("train", "dev", "test")):
        split = cats_and_dogs(16, seed)
        labels = [str(int(label == "cat")) for label in split.labels]
        if name == "test":
            rows = [("index", "sentence"), *zip(split.ids, split.examples, strict=True)]
        else:
            rows = [("sentence", "label"), *zip(split.examples, labels, strict=True)]
        write_table(tmp_path / "glue" / "SST-2" / f"{name}.tsv", rows)
    (row,) = run(recipe("glue"), "--data", tmp_path / "glue", "--tasks", "SST-2")
    assert row["task"] == "SST-2" and len(row["results"]) == 1
    best = tmp_path / "out" / "SST-2" / "published"
    lines = (best / "predictions" / "SST-2.tsv").read_text().splitlines()
    assert lines[0] == "index\tprediction" and len(lines) == 17
    assert "| SST-2 | accuracy |" in capsys.readouterr().out


def test_prompts(run, tmp_path, capsys):
    words = "the a cat dog sat ran on under mat rug it was great terrible .".split()
    tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, *words])
    start = MaskedLM(SIZES["discriminator"], tokenizer=tokenizer)
    start.save_to_preset(tmp_path / "masked_lm")
    for seed, name in enumerate(("train", "dev")):
        split = cats_and_dogs(16, seed)
        labels = [str(int(label == "cat")) for label in split.labels]
        rows = [("sentence", "label"), *zip(split.examples, labels, strict=True)]
        write_table(tmp_path / "glue" / "SST-2" / f"{name}.tsv", rows)
    flags = ["--data", tmp_path / "glue", "--tasks", "SST-2", "--splits", "2"]
    flags += ["--examples_per_class", "3", "--preset", tmp_path / "masked_lm"]
    rows = run(recipe("prompts"), *flags)
    assert [row["task"] for row in rows] == ["SST-2-0", "SST-2-1"]
    recorded = rows[0]["results"][0]["settings"]
    assert recorded["examples"] == {"train": 6, "dev": 16}
    assert len(recorded["task"]["demonstrations"]) == 6
    a, b = (row["results"][0]["score"] for row in rows)
    line = f"SST-2: accuracy {(a + b) / 2:.1f} ({abs(a - b) / 2:.1f})"
    assert line in capsys.readouterr().out


def test_squad(run, tmp_path):
    pytest.importorskip("official.nlp.tools.squad_evaluate_v1_1")
    context = "the cat sat on the mat . the dog ran under the rug ."
    questions = [
        ("where sat the cat ?", "the mat", 15),
        ("where ran the dog ?", "the rug", 43),
    ]
    for name in ("train", "dev"):
        answered = [
            {
                "id": f"{name}{i}",
                "question": question,
                "answers": [{"text": text, "answer_start": start}],
            }
            for i, (question, text, start) in enumerate(questions)
        ]
        paragraph = {"context": context, "qas": answered}
        data = {"data": [{"title": "t", "paragraphs": [paragraph]}]}
        (tmp_path / f"{name}-v1.1.json").write_text(json.dumps(data))
    (row,) = run(recipe("squad"), "--data", tmp_path)
    assert row["task"] == "squad11"
    recorded = row["results"][0]["settings"]["task"]
    assert recorded == {"answerability": False, "head_type": "xlnet"}
    predictions = tmp_path / "out/squad11/published/predictions"
    (file,) = predictions.iterdir()
    answers = json.loads(file.read_text())
    assert set(answers) == {"dev0", "dev1"}
    assert all(answer in context for answer in answers.values())
    # The score is that of what was written: articles and punctuation don't count.
    scores = {"f1": [], "exact_match": []}
    for i, (_, text, _) in enumerate(questions):
        given, right = (
            collections.Counter(re.findall("cat|dog|sat|ran|on|mat|under|rug", answer))
            for answer in (answers[f"dev{i}"], text)
        )
        shared = (given & right).total()
        scores["f1"].append(2 * shared / (given.total() + right.total()))
        scores["exact_match"].append(given == right)
    means = {name: 100 * sum(values) / 2 for name, values in scores.items()}
    assert row["results"][0]["metrics"]["dev"] == pytest.approx(means)


@pytest.mark.usefixtures("graphs")
def test_tagging(run, tmp_path):
    for seed, name in enumerate(("train", "dev")):
        lines = []
        for text in cats_and_dogs(16, seed).examples:
            tags = {"cat": "B-ANIMAL", "dog": "B-ANIMAL"}
            lines += [f"{word} {tags.get(word, 'O')}" for word in text.split()] + [""]
        (tmp_path / f"{name}.txt").write_text("\n".join(lines))
    flags = "--train", tmp_path / "train.txt", "--dev", tmp_path / "dev.txt"
    (row,) = run(recipe("tagging"), *flags, epochs=20, learning_rate=1e-2)
    (result,) = row["results"]
    assert result["metric"] == "f1"
    # The scores are those of what was written; a span is one word.
    (file,) = (tmp_path / "out").rglob("dev.conll")
    rows = [line.split("\t") for line in file.read_text().splitlines() if line]
    dev = (tmp_path / "dev.txt").read_text().splitlines()
    assert [row[:2] for row in rows] == [line.split() for line in dev if line]
    pairs = collections.Counter((tag, found) for _, tag, found in rows)
    right = pairs["B-ANIMAL", "B-ANIMAL"]
    wrong = pairs["O", "B-ANIMAL"] + pairs["B-ANIMAL", "O"]
    expected = {
        "accuracy": 100 * (right + pairs["O", "O"]) / len(rows),
        "f1": 100 * 2 * right / (2 * right + wrong),
    }
    metrics = result["metrics"]["dev"]
    assert {name: metrics[name] for name in expected} == pytest.approx(expected)
    assert result["score"] == metrics["f1"] > 0


def test_multitask(tmp_path, preset, monkeypatch, capsys):  # noqa: F811
    """Tasks of GLUE and of one's own, in one command."""
    pytest.importorskip("statsmodels")
    toml = ["[animals]", 'kind = "tagging"', "[sentiment]", 'kind = "text"']
    for seed, name in enumerate(("train", "dev")):
        split = cats_and_dogs(16, seed)
        tags = {"cat": "B-ANIMAL", "dog": "B-ANIMAL"}
        lines = []
        for text in split.examples:
            lines += [f"{word} {tags.get(word, 'O')}" for word in text.split()] + [""]
        (tmp_path / f"{name}.txt").write_text("\n".join(lines))
        toml.insert(2, f'{name} = "{name}.txt"')
        rows = zip(split.examples, split.labels, strict=True)
        write_table(tmp_path / f"{name}.tsv", [("review", "label"), *rows])
        toml.append(f'{name} = "{name}.tsv"')
        rows = [(text, int("cat" in text)) for text in split.examples]
        write_table(
            tmp_path / "glue" / "SST-2" / f"{name}.tsv", [("sentence", "label"), *rows]
        )
    (tmp_path / "tasks.toml").write_text("\n".join([*toml, 'text = "review"']))
    flags = ["--preset", preset, "--output", tmp_path / "out", "--smoke"]
    flags += ["--data", tmp_path / "glue", "--tasks", "SST-2", "--seeds", "1"]
    flags += ["--task_file", tmp_path / "tasks.toml", "--distill"]
    monkeypatch.setattr("sys.argv", ["recipe", *map(str, flags)])
    runpy.run_path(str(recipe("multitask")), run_name="__main__")
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    assert [*found["scores"]] == ["single", "multi", "single_to_multi"]
    metrics = {"SST-2": "accuracy", "animals": "f1", "sentiment": "accuracy"}
    assert found["metrics"] == metrics
    assert "| single_to_multi | " in capsys.readouterr().out


def test_text(run, tmp_path):
    split = cats_and_dogs(40)
    rows = zip(split.examples, split.labels, strict=True)
    write_table(tmp_path / "train.tsv", [("review", "animal"), *rows, ("", "cat")])
    flags = ["--train", tmp_path / "train.tsv", "--text", "review", "--label", "animal"]
    (row,) = run(recipe("text"), *flags)
    (result,) = row["results"]
    assert result["settings"]["examples"] == {"train": 36, "dev": 4}
    # The score is that of what was written.
    (file,) = (tmp_path / "out").rglob("*-dev.tsv")
    with open(file, newline="") as opened:
        found = list(csv.DictReader(opened, delimiter="\t"))
    right = [split.labels[int(row["id"])] == row["prediction"] for row in found]
    assert len(right) == 4 and result["score"] == 100 * sum(right) / 4


def test_a_known_task(run, tmp_path, capsys):
    for seed, name in enumerate(("train", "dev", "test")):
        split = cats_and_dogs(16, seed)
        lines = [
            json.dumps({"text": text, "label": label})
            for text, label in zip(split.examples, split.labels, strict=True)
        ]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    (row,) = run(recipe("text"), "--benchmark", "scierc", "--data", tmp_path)
    result = row["results"][0]
    assert (row["task"], result["metric"]) == ("scierc", "macro_f1")
    # Its own settings, but for those of the command line.
    settings = result["settings"]
    assert (settings["report"], settings["dropout"]) == ("best", 0.1)
    assert (settings["epochs"], settings["batch_size"]) == (1, 8)


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_help_shows_the_docstring(path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", [str(path), "--help"])
    with pytest.raises(SystemExit) as caught:
        runpy.run_path(str(path), run_name="__main__")
    assert caught.value.code == 0
    printed = re.sub(r"\x1b\[[\d;]*m|[│╭╮╰╯─]", "", capsys.readouterr().out)
    printed = re.sub(r"\s+", " ", printed)
    docstring = runpy.run_path(str(path))["__doc__"]
    assert f"python recipes/{path.name}" in docstring
    for paragraph in docstring.split("\n\n"):
        assert re.sub(r"\s+", " ", paragraph).strip() in printed


def test_a_wrong_file_is_one_line_and_no_output(run, tmp_path):
    with pytest.raises(SystemExit, match="Error: .*is not a file"):
        run(recipe("text"), "--train", tmp_path / "nothing.tsv")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "flags, message",
    [
        (["--train", "."], "--train . must be a .tsv, .csv or .jsonl file"),
        (["--label", "y"], "--train TSV has no column 'y'; it has"),
        (["--label", "2"], "--train TSV has no column '2'; it has"),
        (
            ["--text", "0"],
            "Columns must all be names, or all be numbers.*got 0, 'label'",
        ),
        (["--score_range", "0", "1"], "--score_range is for scores: give --regression"),
        (["--labels", "a", "--regression"], "--labels are for classes, --regression"),
        (
            ["--benchmark", "scierc"],
            "--train is for a file of your own, not for --benchmark",
        ),
        (
            ["--template", "{first} [MASK]", "--balance"],
            "--balance has no effect on a --template",
        ),
        (["--dev_fraction", "2"], "--dev_fraction must be above 0 and below 1; got 2"),
        (["--name", "../../evil"], "--name must be 1 to 100 bytes .*'../../evil'"),
        (["--max_dev_examples", "-3"], "--max_dev_examples -3 must be at least 1"),
        (
            ["--settings", "epochs", "1.5"],
            "--settings: `epochs` must be a whole number",
        ),
        (
            ["--preset", "tiny"],
            "The preset 'tiny' has no tokenizer. Name the directory",
        ),
        (["--output", "TSV/out"], "--output TSV/out cannot hold results: Not a dir"),
    ],
)
def test_errors_are_in_the_words_of_the_command_line(
    preset,  # noqa: F811
    monkeypatch,
    tmp_path,
    flags,
    message,
):
    path = str(tmp_path / "train.tsv")
    write_table(tmp_path / "train.tsv", [("text", "label"), *("ax", "by") * 4])
    given = ["--preset", preset, "--output", str(tmp_path / "out"), "--train", path]
    flags = [flag.replace("TSV", path) for flag in flags]
    monkeypatch.setattr("sys.argv", ["finetune_text.py", *given, *flags])
    with pytest.raises(SystemExit) as caught:
        runpy.run_path(str(recipe("text")), run_name="__main__")
    assert re.match(
        "Error: " + message.replace("TSV", re.escape(path)), caught.value.code
    )
    assert "\n" not in caught.value.code
    assert [path.name for path in tmp_path.iterdir()] == ["train.tsv"]


def test_ctrl_c_says_that_the_rest_can_be_made_later(
    run, tmp_path, monkeypatch, capsys
):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Finetuner, "run", stop)
    write_table(tmp_path / "train.tsv", [("text", "label"), *("ax", "by") * 4])
    with pytest.raises(SystemExit) as caught:
        run(recipe("text"), "--train", tmp_path / "train.tsv")
    assert caught.value.code == 130
    assert "The same command makes the runs that are missing" in capsys.readouterr().err
