"""Against loops over single texts, without padding, in NumPy."""

import numpy as np
import pytest

from keras_corrupt.models import Electra, ElectraTT, Electric, MaskedLM, TwoTower
from keras_corrupt.scoring import pseudo_log_likelihoods
from tests.conftest import SIZES

PAIR = "a dog sat", "ran slowly ."
TEXTS = ["the cats sat on the mat .", "a dog ran", "", PAIR, "the mat ran"]
ENCODER = {**SIZES["discriminator"], "vocabulary_size": 60, "initializer_range": 0.3}


def make(system, tokenizer, **options):
    generator = [] if system in (MaskedLM, TwoTower) else [SIZES["generator"]]
    return system(ENCODER, *generator, tokenizer=tokenizer, **options)


def log_softmax(logits):
    logits = np.array(logits, "float64")
    logits -= logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def log_q(network, inputs):
    """Exact, from the logits of a two-tower network at all positions."""
    ids = inputs["token_ids"]
    positions = np.arange(ids.shape[1], dtype="int32")[None]
    logs = log_softmax(network.head(network(inputs), positions))
    return np.take_along_axis(logs[0], ids[0][:, None], axis=-1)[:, 0]


def of_electric(model, inputs):
    weights = np.array(model.discriminator.head.energy)[:, 0]
    return -np.array(model.encoder(inputs))[0] @ weights


def of_electra_tt(model, inputs):
    logit = np.array(model.discriminator(inputs), "float64")[0]
    d = 1 - 1 / (1 + np.exp(-logit))  # of data
    return np.log(0.15 * np.exp(log_q(model.generator, inputs)) * d / (1 - d))


def of_masked_lm(model, inputs):
    logs = np.zeros(inputs["token_ids"].shape[1])
    for position, token in enumerate(inputs["token_ids"][0]):
        masked = inputs["token_ids"].copy()
        masked[0, position] = model.mask_id
        logits = model.network(
            {**inputs, "token_ids": masked}, np.array([[position]], "int32")
        )
        logs[position] = log_softmax(logits)[0, 0, token]
    return logs


@pytest.mark.parametrize(
    "system, logs_of",
    [
        (Electric, of_electric),
        (TwoTower, lambda model, inputs: log_q(model.network, inputs)),
        (ElectraTT, of_electra_tt),
        (MaskedLM, of_masked_lm),
    ],
)
def test_sums_are_those_of_single_texts(system, logs_of, tokenizer):
    model = make(system, tokenizer)
    expected = []
    for text in filter(None, TEXTS):
        inputs = tokenizer.pack([text], 24)
        counted = ~np.isin(inputs["token_ids"][0], [0, 2, 3])
        expected.append(logs_of(model, inputs)[counted].sum())
    found = pseudo_log_likelihoods(model, TEXTS, batch_size=2)
    expected.insert(2, 0.0)  # nothing to add up
    assert len(set(np.round(expected, 3))) == len(TEXTS)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    together = pseudo_log_likelihoods(model, TEXTS)
    np.testing.assert_allclose(found, together, rtol=1e-4, atol=1e-4)


def test_errors(tokenizer):
    with pytest.raises(
        ValueError, match="Electra gives .* ElectraTT, Electric, MaskedLM, TwoTower"
    ):
        pseudo_log_likelihoods(make(Electra, tokenizer), ["a dog"])
    electric = make(Electric, tokenizer)
    with pytest.raises(ValueError, match="got one string"):
        pseudo_log_likelihoods(electric, "a dog")
    with pytest.raises(ValueError, match="`batch_size` must be 1 or more; got 0"):
        pseudo_log_likelihoods(electric, ["a dog"], batch_size=0)
    with pytest.raises(ValueError, match=r"texts\[1\] has 42 tokens"):
        pseudo_log_likelihoods(electric, ["a dog", "dog " * 40])
    with pytest.raises(ValueError, match="need the model's tokenizer"):
        pseudo_log_likelihoods(Electric(**SIZES), ["a dog"])
