import warnings

import pytest

import keras_corrupt
from keras_corrupt import models
from keras_corrupt.downstream import TextClassifier
from keras_corrupt.models import Electra, MaskedLM
from keras_corrupt.models.one_state import spread_of_random_tokens
from keras_corrupt.training import init_from
from tests.models.conftest import kill

SIZE = {
    "vocabulary_size": 120,
    "num_layers": 2,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_heads": 2,
    "embedding_size": 16,
    "max_length": 24,
}


def make(cls, **options):
    main = next(iter(cls.network_arguments))
    return cls.from_preset("tiny", **{main: SIZE}, **options)


@pytest.mark.parametrize(
    "name", sorted({*models.__all__} - {"Pretrainer", "load_preset"})
)
def test_every_system_says_that_it_is_dead(name):
    model = make(getattr(models, name))
    detector = {"rtd_auc": 0.5}
    alive = spread_of_random_tokens(model)
    assert 0.1 < alive < 1
    assert not model.collapse({"token_spread": alive} | detector)
    kill(model)
    dead = spread_of_random_tokens(model)
    assert abs(dead) < 1e-5
    assert "spread 0.0000" in model.collapse({"token_spread": dead} | detector)


@pytest.mark.parametrize(
    "spread, auc, dead",
    [
        # As measured in runs that died, and that were on their plateau.
        (0.003, 0.497, True),
        (0.000, 0.519, True),
        (0.0001, 0.529, True),
        (0.036, 0.534, False),
        (0.066, 0.533, False),
        (0.008, 0.533, False),
        (0.0003, 0.7, False),
        # Not told apart, though different; nearly alike, and yet told apart.
        (0.7, 0.49, False),
        (0.002, 0.6, False),
    ],
)
def test_a_detector_on_its_plateau_is_not_dead(spread, auc, dead):
    metrics = {"token_spread": spread, "rtd_auc": auc}
    assert bool(make(Electra).collapse(metrics)) == dead


@pytest.fixture
def dead_preset(tmp_path, tokenizer):
    model = make(Electra, tokenizer=tokenizer)
    kill(model)
    model.save_to_preset(tmp_path / "dead")
    return tmp_path / "dead"


def test_a_model_that_starts_from_a_dead_one_warns(dead_preset):
    for start in (
        keras_corrupt.models.load_preset,  # scoring, embedding and conversion do so
        lambda path: init_from.load(path, Electra, "tiny"),
        lambda path: init_from.load(path, MaskedLM, "tiny"),
        lambda path: TextClassifier.from_preset(path, labels=("a", "b")),
    ):
        with pytest.warns(UserWarning, match="dead: all tokens.*--beta_2 0.98"):
            start(dead_preset)


def test_a_model_that_starts_from_a_living_one_does_not(tmp_path):
    make(Electra).save_to_preset(tmp_path / "preset")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        Electra.from_preset(tmp_path / "preset")
