import json

import pytest

from keras_corrupt.scoring import Pair, accuracies, read_pairs


def line(good, bad, paradigm, field):
    names = "sentence_good", "sentence_bad", "UID", "field", "pairID"
    return json.dumps(dict(zip(names, (good, bad, paradigm, field, "0"), strict=True)))


def test_files_and_accuracies(tmp_path):
    (tmp_path / "a.jsonl").write_text(
        line("It is.", "It are.", "is", "morphology")
        + "\n"
        + line("He is.", "He are.", "is", "morphology")
        + "\n"
    )
    (tmp_path / "b.jsonl").write_text(line("Go.", "Gone.", "go", "syntax") + "\n\n")
    pairs = read_pairs([tmp_path])
    assert pairs == read_pairs([tmp_path / "a.jsonl", tmp_path / "b.jsonl"])
    assert pairs[2] == Pair("Go.", "Gone.", "go", "syntax")
    # The acceptable ones, then the others; equal is not likelier.
    by_paradigm, by_field, whole = accuracies(pairs, [-1, -5, -2, -2, -4, -2])
    assert by_paradigm == {"go": 0.0, "is": 0.5}
    assert by_field == {"morphology": 0.5, "syntax": 0.0}
    assert whole == {"all": pytest.approx(1 / 3)}
    *_, whole = accuracies(pairs, [-1, -5, -2, -2, -4, -2], ties="right")
    assert whole == {"all": pytest.approx(2 / 3)}
    with pytest.raises(ValueError, match="`ties` must be"):
        accuracies(pairs, [0] * 6, ties="half")


def test_errors(tmp_path):
    (tmp_path / "bad.jsonl").write_text(line("a", "b", "c", "d") + '\n{"UID": 1}\n')
    with pytest.raises(ValueError, match="bad.jsonl, line 2: no pair of BLiMP's"):
        read_pairs([tmp_path])
    for fields in (("a", None, "c", "d"), ("a", "b", "c", None)):
        (tmp_path / "null.jsonl").write_text(line(*fields))
        with pytest.raises(ValueError, match="line 1: .*a field is no string"):
            read_pairs([tmp_path / "null.jsonl"])
    with pytest.raises(FileNotFoundError, match="none.jsonl is not a file"):
        read_pairs([tmp_path / "none.jsonl"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="No pairs in .*empty"):
        read_pairs([tmp_path / "empty"])
