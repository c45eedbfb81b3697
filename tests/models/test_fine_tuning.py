import dataclasses

import pytest

from keras_corrupt.models import CocoLM, Electra, MaskedLM, Teams
from keras_corrupt.models.fine_tuning import size_of

#: System -> its functions: settings and what was searched.
PAPERS = {
    "ELECTRA": (Electra.fine_tuning, Electra.fine_tuning_search),
    "BERT": (MaskedLM.fine_tuning, MaskedLM.fine_tuning_search),
    "TEAMS": (Teams.fine_tuning, Teams.fine_tuning_search),
    "COCO-LM": (CocoLM.fine_tuning, CocoLM.fine_tuning_search),
}


def test_settings_of_the_thesis():
    # Clark's thesis, table 5.2.
    small = Electra.fine_tuning("small", "MRPC")
    assert (small.learning_rate, small.layer_decay) == (3e-4, 0.8)
    assert (small.epochs, small.batch_size, small.weight_decay) == (3, 32, 0)
    assert Electra.fine_tuning("base", "squad20").epochs == 2
    assert Electra.fine_tuning("large", "RTE").epochs == 10
    assert Electra.fine_tuning("large", "RTE").layer_decay == 0.9
    assert MaskedLM.fine_tuning("base", "STS-B") == Electra.fine_tuning("base", "STS-B")


def test_settings_of_teams():
    # Table 6: no layer-wise decay; the best epoch counts on GLUE.
    cola = Teams.fine_tuning("small", "CoLA")
    assert (cola.learning_rate, cola.layer_decay, cola.epochs) == (1e-4, 1.0, 5)
    assert cola.report == "best"
    squad = Teams.fine_tuning("large", "squad11")
    assert (squad.learning_rate, squad.batch_size, squad.epochs) == (3e-5, 48, 2)
    assert squad.report == "last"


def test_settings_of_coco_lm():
    # Tables 7 and 8.
    cola = CocoLM.fine_tuning("base", "CoLA")
    assert (cola.beta_2, cola.warmup_fraction, cola.clip_norm) == (0.98, 0.06, 0)
    for size, task in (("base", "MNLI"), ("large", "QQP"), ("large", "squad20")):
        searched = CocoLM.fine_tuning_search(size, task)
        rates = searched["learning_rate"]
        rate = CocoLM.fine_tuning(size, task).learning_rate
        assert min(rates) <= rate <= max(rates)


@pytest.mark.parametrize("paper", PAPERS)
@pytest.mark.parametrize("size", ["tiny", "small", "base", "large"])
@pytest.mark.parametrize("task", ["RTE", "MNLI", "squad20"])
def test_what_was_searched(paper, size, task):
    settings, search_space = PAPERS[paper]
    known = dataclasses.asdict(settings(size, task))
    for name, values in search_space(size, task).items():
        assert len(set(values)) == len(values) > 0
        assert {type(value) for value in values} == {type(known[name])}


def test_a_tiny_encoder_learns_longer():
    epochs = {t: Electra.fine_tuning("tiny", t).epochs for t in ("CoLA", "squad11")}
    assert epochs == {"CoLA": 10, "squad11": 5}


def test_sizes_are_told_by_width():
    class Encoder:
        hidden_size = 256

    for width, size in {64: "tiny", 256: "small", 300: "base", 1024: "large"}.items():
        Encoder.hidden_size = width
        assert size_of(Encoder) == size
    Encoder.hidden_size = 2048
    assert size_of(Encoder) == "large"


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"learning_rate": float("nan")}, "`learning_rate` must be above 0; got nan"),
        ({"learning_rate": -1e-3}, "`learning_rate` must be above 0; got -0.001"),
        ({"learning_rate": 0}, "`learning_rate` must be"),
        ({"learning_rate": float("inf")}, "`learning_rate` must be"),
        ({"learning_rate": "fast"}, "`learning_rate` must be .*got 'fast'"),
        ({"epochs": 1.5}, "`epochs` must be a whole number, at least 1; got 1.5"),
        ({"epochs": 0}, "`epochs` must be"),
        ({"batch_size": 0}, "`batch_size` must be .* at least 1 and at most 65,536"),
        ({"batch_size": 10**9}, "`batch_size` must be"),
        ({"layer_decay": 0}, "`layer_decay` must be"),
        ({"layer_decay": 1.1}, "`layer_decay` must be"),
        ({"layer_decay_rule": "mine"}, "`layer_decay_rule` must be paper or released"),
        ({"warmup_fraction": 1}, "`warmup_fraction` must be"),
        ({"weight_decay": -1}, "`weight_decay` must be"),
        ({"beta_2": 1}, "`beta_2` must be"),
        ({"bias_correction": "maybe"}, "`bias_correction` must be True or False"),
        ({"clip_norm": -1}, "`clip_norm` must be"),
        ({"dropout": 1}, "`dropout` must be"),
        ({"report": "foo"}, "`report` must be last or best; got 'foo'"),
        ({"rate": 1}, "no setting rate; known are learning_rate"),
    ],
)
def test_settings_out_of_their_bounds(changes, message):
    with pytest.raises(ValueError, match=message):
        Electra.fine_tuning("small", "RTE").changed(changes)


def test_settings_as_a_command_line_gives_them():
    given = {"epochs": "7", "learning_rate": 1, "bias_correction": "False"}
    settings = Electra.fine_tuning("tiny", "RTE").changed({**given, "report": "best"})
    assert (settings.epochs, settings.learning_rate) == (7, 1.0)
    assert (settings.bias_correction, settings.report) == (False, "best")
