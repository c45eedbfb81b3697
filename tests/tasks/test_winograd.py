import pytest

from keras_corrupt.tasks.glue.winograd import (
    Schema,
    WinogradTask,
    find_schema,
    other_candidates,
)
from tests.tasks.conftest import CUP, ROWS


def put(schema):
    return "".join(schema.parts)


@pytest.mark.parametrize(
    "text, sentence, result",
    [
        (CUP, "The cup was light.", CUP.replace("it was", "the cup was")),
        # Before and after the pronoun, with other punctuation.
        (
            "Now, I must find it, said Kim.",
            "Now I must find The key",  # which isn't in the text
            "Now, I must find the key, said Kim.",
        ),
        # Possessive, at a sentence's beginning, and a pronoun that stays.
        ("Kim hid his hat.", "Kim hid Kim's hat.", "Kim hid Kim's hat."),
        (
            "Ann met Kim. She gave her a hat.",
            "ann gave her a hat.",
            "Ann met Kim. Ann gave her a hat.",
        ),
        (
            "Ann met Kim. She gave her a hat.",
            "She gave Ann a hat.",
            "Ann met Kim. She gave Ann a hat.",
        ),
        # An apostrophe behind the pronoun, and the candidate's word before it.
        ("Bo fell. He'd cried.", "Bo'd cried.", "Bo fell. Bo'd cried."),
        # One common word says little, if the candidate is not of the text.
        ("The cup fell, and it broke.", "Somebody broke.", None),
        (
            "The cup fell, and it broke.",
            "The cup broke.",
            "The cup fell, and the cup broke.",
        ),
        # Nothing in common; nothing replaced; nothing at all.
        (CUP, "Birds sing.", None),
        (CUP, "It was light.", None),
        (CUP, "", None),
        ("", "The cup was light.", None),
    ],
)
def test_find_schema(text, sentence, result):
    schema = find_schema(text, sentence)
    assert (schema and put(schema)) == result


def test_other_candidates():
    text = "Ann's dog bit the old man with a hat, but Sue Li saw that it was her fault."
    schema = find_schema(text, "It was the hat's fault.")
    assert text[schema.start : schema.end] == "her"
    assert other_candidates(schema) == ["Ann's", "the old man's", "Sue Li's"]
    # None shares a word with the candidate, and none is the pronoun's place.
    for candidate in ("Ann", "the man", "Sue"):
        others = other_candidates(schema._replace(candidate=candidate))
        assert len(others) == 3
        assert not {candidate.split()[-1]} & {w for o in others for w in o.split()}
    assert other_candidates(Schema("He fell.", 0, 2, "Bo")) == []


def test_task(tmp_path):
    lines = ["index\tsentence1\tsentence2\tlabel"]
    for i, (row, label) in enumerate(zip(ROWS, "0101", strict=True)):
        lines.append(f"{i}\t{row[0]}\t{row[1]}\t{label}")
    (tmp_path / "WNLI").mkdir()
    for name, kept in {
        "train": [*lines, lines[1]],
        "dev": lines,
        "test": lines,
    }.items():
        (tmp_path / "WNLI" / f"{name}.tsv").write_text("\n".join(kept) + "\n")
    task = WinogradTask(tmp_path)
    assert task.model_arguments == {"fallback": "0"}
    assert task.without_pronoun == {"train": 1, "dev": 1, "test": 1}
    train = task.splits["train"]
    assert train.examples == [*ROWS[:3], ROWS[0]]
    assert (train.labels, train.ids) == (["0", "1", "0", "0"], ["0", "1", "2", "4"])
    assert train.skipped == {"no pronoun found": (1, "row 3")}
    dev = task.splits["dev"]
    assert len(dev) == 4
    assert task.metrics(["0", "1", "1", "0"], dev) == {"accuracy": 50}
    assert task.guesses(dev) == ["0"] * 4
    path = task.write_predictions(["0", "1", "1", "0"], "test", tmp_path)
    assert path.name == "WNLI.tsv"
    assert path.read_text() == "index\tprediction\n0\t0\n1\t1\n2\t1\n3\t0\n"
