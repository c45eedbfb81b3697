"""`python -m keras_corrupt.scoring`, with a trained preset of a made-up model."""

import io
import json
import re
from pathlib import Path

import numpy as np
import pytest

from keras_corrupt.models import Electra, Electric, MaskedLM
from keras_corrupt.scoring import acceptabilities, score_sentences
from keras_corrupt.scoring.__main__ import main
from tests.conftest import own_system

TEXTS = ["The cat  sat on the mat .", "Dogs ran slowly"]


@pytest.fixture
def preset(tmp_path, sizes, tokenizer, monkeypatch):
    sizes["discriminator"] |= {"vocabulary_size": 60, "initializer_range": 0.5}
    model = Electra(**sizes, tokenizer=tokenizer)
    # Half of the tokens are above the lowest limit, log(0.25 / 0.75) as a logit.
    probabilities = np.concatenate([p for _, p in model.score(TEXTS)])
    middle = np.median(np.log(probabilities / (1 - probabilities)))
    bias = model.discriminator.head.classifier.bias
    bias.assign(bias + np.log(0.25 / 0.75) - middle)
    model.save_to_preset(tmp_path / "made_up")
    monkeypatch.setattr(Electra, "trained_presets", {"made_up": tmp_path / "made_up"})
    return "made_up"


@pytest.fixture
def run(monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["scoring", *arguments])
        main()
        return capsys.readouterr().out

    return run


def test_the_model_decides_what_is_marked(run, preset, monkeypatch):
    scores = Electra.from_preset(preset).score(TEXTS)
    monkeypatch.setattr(
        "sys.stdin", io.TextIOWrapper(io.BytesIO("\n".join(TEXTS).encode()))
    )
    table = run("score", "--preset", preset)
    header, *rows = [line.split("\t") for line in table.splitlines()]
    assert header == ["text", "word", "probability"]
    assert [row[:2] for row in rows[:7]] == [["1", w] for w in TEXTS[0].split()]
    # The first text's words are of one piece each.
    probabilities = [float(probability) for *_, probability in rows]
    np.testing.assert_allclose(probabilities[:7], scores[0][1][1:-1], atol=1e-4)

    marked = run("highlight", *TEXTS, "--preset", preset)
    assert re.sub(r"<(\S+) [\d.]+>", r"\1", marked) == "\n".join(TEXTS) + "\n"
    expected = [word for _, word, p in rows if float(p) >= 0.25]
    assert [word for word, _ in re.findall(r"<(\S+) ([\d.]+)>", marked)] == expected
    assert 0 < len(expected) < len(rows)
    colored = run("highlight", *TEXTS, "--preset", preset, "--color")
    assert re.sub(r"\x1b\[[\d;]*m", "", colored).startswith("\n".join(TEXTS))
    assert "the probability that a word was replaced" in colored


def test_a_long_text_is_read_in_windows(run, preset):
    text = "the cat sat on the mat . " * 6
    assert run("highlight", text, "--preset", preset).count("cat") == 6
    assert len(run("score", text, "--preset", preset).splitlines()) == 1 + 6 * 7


def test_a_system_of_ones_own_is_named(run, preset, tmp_path, monkeypatch):
    expected = run("score", *TEXTS, "--preset", preset)
    system = own_system(tmp_path / "made_up", "own_detector")
    monkeypatch.chdir(tmp_path)
    own = ["--preset", str(tmp_path / "made_up")]
    with pytest.raises(SystemExit, match="none of the known classes"):
        run("score", *TEXTS, *own)
    own += ["--system", system]
    assert run("score", *TEXTS, *own) == expected
    with pytest.raises(SystemExit, match="Own gives tokens no probabilities"):
        run("pll", *TEXTS, *own)


def test_errors_are_one_line(run, preset, tmp_path, sizes, tokenizer):
    with pytest.raises(
        SystemExit, match="^Error: Unknown preset 'nope': neither.*made_up"
    ):
        run("score", "a", "--preset", "nope")
    encoder = sizes["discriminator"] | {"vocabulary_size": 60}
    MaskedLM(encoder, tokenizer=tokenizer).save_to_preset(tmp_path / "masked")
    with pytest.raises(SystemExit, match="MaskedLM does not tell replaced words"):
        run("score", "a", "--preset", str(tmp_path / "masked"))


def test_the_standard_input_is_utf_8_in_any_locale(run, preset, monkeypatch):
    def scored(content):
        stdin = io.TextIOWrapper(io.BytesIO(content), "ascii", "surrogateescape")
        monkeypatch.setattr("sys.stdin", stdin)
        return run("score", "--preset", preset)

    assert "\tKätzchen\t" in scored("die Kätzchen".encode())
    with pytest.raises(SystemExit, match="standard input:1 is not UTF-8"):
        scored("die Kätzchen".encode("latin-1"))


@pytest.fixture
def electric(tmp_path, sizes, tokenizer):
    sizes["discriminator"] |= {"vocabulary_size": 60, "initializer_range": 0.5}
    model = Electric(**sizes, tokenizer=tokenizer)
    model.save_to_preset(tmp_path / "electric")
    return model, str(tmp_path / "electric")


def test_likelihoods(run, electric, preset):
    model, directory = electric
    rows = [
        row.split("\t")
        for row in run("pll", *TEXTS, "--preset", directory).splitlines()
    ]
    assert [text for _, text in rows] == TEXTS
    found = [float(likelihood) for likelihood, _ in rows]
    np.testing.assert_allclose(found, score_sentences(model, TEXTS), atol=1e-3)
    with pytest.raises(SystemExit, match="made_up: Electra gives tokens no probab"):
        run("pll", "a", "--preset", preset)


def test_the_likelier_text_is_chosen(run, electric, tmp_path):
    """With a recogniser of no opinion, and as the acceptable one of two sentences."""
    model, directory = electric
    texts = ["the cat sat", "a dog ran slowly"]
    good, bad = np.array(texts)[np.argsort(-score_sentences(model, texts))]
    hypotheses = {
        "hyp_1": {"text": bad, "score": 0.0},
        "hyp_2": {"text": good, "score": 0.0},
    }
    lists = {str(i): {"ref": good, **hypotheses} for i in range(4)}
    (tmp_path / "lists.json").write_text(json.dumps(lists))
    chosen = str(tmp_path / "chosen.json")
    options = "--preset", directory, "--output", chosen
    table = run("rescore", str(tmp_path / "lists.json"), *options)
    _, best, reranked, oracle = [row.split("\t") for row in table.splitlines()]
    assert float(best[1]) > 50 and best[1] == best[2]
    assert reranked == ["re-ranked, lambda 0.05", "0.00", "0.00"]
    assert oracle[1:] == ["0.00", "0.00"]
    assert json.loads(Path(chosen).read_text()) == dict.fromkeys(lists, good)
    with pytest.raises(SystemExit, match="chosen.json exists. Name a new file."):
        run("rescore", str(tmp_path / "lists.json"), *options)
    with pytest.raises(SystemExit, match="chosen.json.gz: texts are written as they"):
        run("rescore", str(tmp_path / "lists.json"), *options[:3], chosen + ".gz")

    pair = {"sentence_good": good, "sentence_bad": bad, "UID": "p", "field": "f"}
    other = {"sentence_good": bad, "sentence_bad": good, "UID": "o", "field": "f"}
    lines = "\n".join(map(json.dumps, (pair, other)))
    (tmp_path / "pairs.jsonl").write_text(lines)
    table = run("blimp", str(tmp_path / "pairs.jsonl"), "--preset", directory)
    rows = [row.split("\t") for row in table.splitlines()]
    shares = {"o": "0.0", "p": "100.0", "f": "50.0", "all": "50.0"}
    assert rows[1:] == [[name, share, share] for name, share in shares.items()]


def test_a_detector_judges_minimal_pairs(run, preset, tmp_path):
    """By the probability that no token was replaced."""
    texts = ["the cat sat", "a dog ran slowly"]
    scores = Electra.from_preset(preset).score(texts)
    expected = [np.log1p(-score.probabilities[1:-1]).sum() for score in scores]
    found = acceptabilities(Electra.from_preset(preset), texts)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    good, bad = np.array(texts)[np.argsort(expected)[::-1]]
    pair = {"sentence_good": good, "sentence_bad": bad, "UID": "p", "field": "f"}
    (tmp_path / "pairs.jsonl").write_text(json.dumps(pair))
    table = run("blimp", str(tmp_path / "pairs.jsonl"), "--preset", preset)
    assert table.splitlines()[-1] == "all\t100.0\t100.0"
