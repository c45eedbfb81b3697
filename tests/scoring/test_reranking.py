import json
import lzma

import numpy as np
import pytest

from keras_corrupt.scoring import NBest, read_n_best, rerank
from keras_corrupt.scoring.reranking import word_errors


def edit_distance(a, b):
    """By its definition, for short texts."""
    if not a or not b:
        return len(a) + len(b)
    return min(
        edit_distance(a[1:], b) + 1,
        edit_distance(a, b[1:]) + 1,
        edit_distance(a[1:], b[1:]) + (a[0] != b[0]),
    )


def test_word_errors_are_the_edit_distance():
    rng = np.random.default_rng(0)
    for _ in range(100):
        a, b = (list(rng.choice(["a", "b", "c"], rng.integers(0, 6))) for _ in range(2))
        assert word_errors(" ".join(a), " ".join(b)) == edit_distance(a, b)


def test_lambda_is_chosen_on_the_first_half_and_tested_on_the_other():
    # The recogniser is wrong by 0.3 everywhere; the model likes what is right by 1
    # in the first half, and, from lambda 0.5 on, something worse in the other.
    first = NBest("a b", ["a c", "a b"], np.array([-1.0, -1.3]))
    other = NBest("a b c d", ["a b c e", "a b c d", "a"], np.array([-1.0, -1.3, -3.0]))
    lists = [first, first, other, other]
    likelihoods = [[-5.0, -4.0], [-5.0, -4.0], [-5.0, -4.0, 0.0], [-5.0, -4.0, 0.0]]
    result = rerank(lists, likelihoods)
    assert result.weight == 0.35  # the least that is more than 0.3
    assert result.best == (0.5, 0.25)
    assert result.reranked == (0.0, 0.0)
    assert result.oracle == (0.0, 0.0)
    assert result.curve[0.25] == 0.5 and result.curve[1.0] == 0.0
    assert sorted(result.curve) == [i / 20 for i in range(1, 21)]
    # With another lambda the other half comes out worse, which must not matter.
    assert rerank(lists, likelihoods, weights=(1.0,)).reranked == (0.0, 0.75)


def test_scores_by_the_word():
    # -3 and -4 in all; -1.5 and -1 a word.
    lists = [NBest("a b c d", ["a b", "a b c d"], np.array([-2.0, -3.0]))] * 2
    likelihoods = [[-20.0, -20.0]] * 2
    assert rerank(lists, likelihoods, (0.05,)).chosen == [0, 0]
    assert rerank(lists, likelihoods, (0.05,), length_power=1.0).chosen == [1, 1]
    empty = [NBest("a", ["", "a"], np.array([-1.0, -2.0]))] * 2
    assert rerank(empty, [[0.0, 0.0]] * 2, length_power=1.0).chosen == [0, 0]


def test_files(tmp_path):
    hypotheses = {
        "hyp_2": {"text": "x", "score": -2},
        "hyp_1": {"text": "y", "score": -1},
    }
    lists = {
        "b": {"ref": "x y", **hypotheses},
        "a": {"ref": "z", "hyp_1": {"text": "z", "score": -3.5, "lm": -1}},
    }
    with lzma.open(tmp_path / "lists.json.xz", "wt") as file:
        json.dump(lists, file)
    (tmp_path / "lists.json").write_text(json.dumps(lists))
    for name in ("lists.json.xz", "lists.json"):
        first, second = read_n_best(tmp_path / name)
        assert (first.reference, first.texts) == ("z", ["z"])
        assert (first.utterance, second.utterance) == ("a", "b")
        assert second.texts == ["y", "x"] and second.scores.tolist() == [-1, -2]
    for lists_of in lists.values():
        for key in set(lists_of) - {"ref"}:
            lists_of[key]["lm"] = -4.0
    (tmp_path / "parts.json").write_text(json.dumps(lists))
    _, second = read_n_best(tmp_path / "parts.json", [("score", 1.0), ("lm", -0.5)])
    assert second.scores.tolist() == [1.0, 0.0]
    for change, message in [
        ({"ref": " "}, "no reference of one half of the utterances has a word"),
        ({"ref": None}, "a has a text that is no string"),
        ({"hyp_1": {"text": None, "score": 1}}, "a has a text that is no string"),
        ({"hyp_1": {"text": "z", "score": None}}, "a has a score that is no number"),
    ]:
        (tmp_path / "bad.json").write_text(
            json.dumps({**lists, "a": {**lists["a"], **change}})
        )
        with pytest.raises(ValueError, match=message):
            read_n_best(tmp_path / "bad.json")
    (tmp_path / "bad.json.gz").write_bytes(b"no archive")
    with pytest.raises(ValueError, match="bad.json.gz is damaged"):
        read_n_best(tmp_path / "bad.json.gz")
    with pytest.raises(FileNotFoundError, match="none.json is not a file"):
        read_n_best(tmp_path / "none.json")
    with pytest.raises(ValueError, match="KeyError: 'ctc'"):
        read_n_best(tmp_path / "parts.json", [("ctc", 1.0)])
    for bad in ("[]", "{", '{"a": {"ref": "x"}, "b": {}}', '{"a": {"hyp_1": 3}}'):
        (tmp_path / "bad.json").write_text(bad)
        with pytest.raises(ValueError, match="bad.json"):
            read_n_best(tmp_path / "bad.json")
