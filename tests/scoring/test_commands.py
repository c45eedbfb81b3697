"""`python -m keras_corrupt.scoring`, with a trained preset of a made-up model."""

import io
import re

import numpy as np
import pytest

from keras_corrupt.models import Electra, MaskedLM
from keras_corrupt.scoring.__main__ import main

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
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(TEXTS)))
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


def test_errors_are_one_line(run, preset, tmp_path, sizes, tokenizer):
    with pytest.raises(SystemExit, match="^Error: --preset nope: neither.*made_up"):
        run("score", "a", "--preset", "nope")
    with pytest.raises(SystemExit, match="^Error: Text 1 has .* Split it"):
        run("score", "the " * 40, "--preset", preset)
    encoder = sizes["discriminator"] | {"vocabulary_size": 60}
    MaskedLM(encoder, tokenizer=tokenizer).save_to_preset(tmp_path / "masked")
    with pytest.raises(SystemExit, match="MaskedLM does not tell replaced words"):
        run("score", "a", "--preset", str(tmp_path / "masked"))
