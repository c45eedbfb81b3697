"""What the page shows of a model; Gradio draws it, and is not needed here."""

import inspect
import sys

import numpy as np
import pytest

from keras_corrupt import scoring
from keras_corrupt.cli import demo
from keras_corrupt.cli.tabs import tabs_of
from keras_corrupt.models import Electra, MaskedLM, TwoTower
from tests.cli.conftest import TOKENIZER
from tests.conftest import SIZES
from tests.multitask.conftest import TASKS

TEXT = "The cat  sat on the rug ."


@pytest.fixture
def tabs(made):
    return {tab.title: tab for tab in tabs_of(made("several"))}


@pytest.fixture(scope="module")
def masked():
    encoder = {**SIZES["discriminator"], "initializer_range": 0.5}
    return MaskedLM(encoder, tokenizer=TOKENIZER)


def test_a_model_has_tabs_for_what_it_can_do(made, masked):
    def titles(model):
        return [tab.title for tab in tabs_of(model)]

    electra = Electra(**SIZES, tokenizer=TOKENIZER)
    assert titles(electra) == ["Replaced words", "Nearest sentences"]
    assert titles(masked) == ["Likelihood", "Nearest sentences"]
    towers = TwoTower(SIZES["discriminator"], tokenizer=TOKENIZER)
    assert titles(towers) == ["Likelihood"]  # which have no encoder
    assert titles(made("several")) == ["Nearest sentences", *TASKS]
    assert titles(made("parser")) == ["Answer"]  # it reads words, and has no tokenizer


def test_pieces_make_up_the_text():
    electra = Electra(**SIZES, tokenizer=TOKENIZER)
    pieces = tabs_of(electra)[0].answer(TEXT)
    assert "".join(piece for piece, _ in pieces) == TEXT
    ((_, expected),) = electra.score([TEXT])
    found = [p for _, p in pieces if p is not None]
    np.testing.assert_allclose(found, expected[1:-1], atol=1e-6)


def test_likelihoods_are_in_order(masked):
    lines = ["a dog", "", "the mat ran .", " the cat "]
    header, rows = tabs_of(masked)[0].answer("\n".join(lines))
    texts = ["a dog", "the mat ran .", "the cat"]
    expected = scoring.score_sentences(masked, texts)
    assert {row[0]: row[1] for row in rows} == pytest.approx(
        dict(zip(texts, expected, strict=True)), abs=1e-3
    )
    means = [row[2] for row in rows]
    assert means == sorted(means, reverse=True) and len(header) == 3
    with pytest.raises(ValueError, match="Write one sentence or more"):
        tabs_of(masked)[0].answer(" \n")


def test_the_nearest_sentence_is_itself(tabs, made):
    _, rows = tabs["Nearest sentences"].answer("the cat", "a dog ran\nthe cat\na mat")
    assert rows[0] == ["the cat", 1.0]
    one, other = scoring.embed_texts(made("several"), ["the cat", rows[1][0]])
    cosine = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
    assert rows[1][1] == pytest.approx(cosine, abs=1e-3)


def test_answers_are_the_models(tabs, made):
    model = made("several")
    _, rows = tabs["animals"].answer("the cat", "")
    expected = model.part("animals").predictions(["the cat"])[0]
    assert [row[0] for row in rows] == [
        "label",
        "probability",
        "probabilities: cat",
        "probabilities: dog",
    ]
    assert rows[0][1] == expected
    header, rows = tabs["words"].answer("a dog ran")
    assert header == ["words", "tags", "probabilities"]
    assert [row[1] for row in rows] == model.part("words").predictions(
        [["a", "dog", "ran"]]
    )[0]
    _, rows = tabs_of(made("multi_label"))[-1].answer("the cat", "a dog")
    (labels,) = made("multi_label").predictions([("the cat", "a dog")])
    assert rows[0] == ["labels", ", ".join(labels)]


def test_the_page_is_this_machines_alone_and_says_nothing(monkeypatch, masked):
    """Unless the flags say otherwise."""
    launched, blocks = {}, {}

    class Gradio:
        """Whatever a page is made of."""

        class Error(Exception):
            pass

        def __getattr__(self, name):
            return self

        def __call__(self, *arguments, **options):
            blocks.update(options)
            return self

        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

        def launch(self, **options):
            launched.update(options)

    monkeypatch.setitem(sys.modules, "gradio", Gradio())
    monkeypatch.setenv("GRADIO_ANALYTICS_ENABLED", "True")
    monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "")
    monkeypatch.setattr("keras_corrupt.models.load_preset", lambda *_: masked)
    monkeypatch.setattr("sys.argv", ["demo", "x"])
    demo.main()
    assert launched["server_name"] == "127.0.0.1" and launched["share"] is False
    assert blocks["analytics_enabled"] is False
    assert demo.os.environ["GRADIO_ANALYTICS_ENABLED"] == "False"
    run = demo.shown_by(Gradio(), tabs_of(masked)[0])
    assert [*inspect.signature(run).parameters] == ["texts"]
    with pytest.raises(Gradio.Error, match="Write one sentence"):
        run("")
    monkeypatch.setitem(sys.modules, "gradio", None)
    with pytest.raises(SystemExit, match=r"pip install 'keras-corrupt\[demo\]'"):
        demo.main()
