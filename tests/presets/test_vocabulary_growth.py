"""Models whose vocabulary grows, of every system."""

import numpy as np
import pytest

from keras_corrupt.models import (
    CocoLM,
    Electra,
    ElectraTT,
    Electric,
    MaskedLM,
    Teams,
    TwoTower,
    load_preset,
)
from keras_corrupt.presets.growth import with_vocabulary
from keras_corrupt.presets.named_variables import named_weights
from keras_corrupt.tokenizers import WordPieceTokenizer
from tests.conftest import SIZES

ENCODER = {**SIZES["discriminator"], "vocabulary_size": 47}
#: A model's rows beyond the tokenizer's 45 pieces stay behind the new ones.
SPARE = 2
MODELS = {
    MaskedLM: {"encoder": ENCODER},
    TwoTower: {"encoder": ENCODER},
    Electra: {"discriminator": ENCODER, "generator": SIZES["generator"]},
    ElectraTT: {"discriminator": ENCODER, "generator": SIZES["generator"]},
    Electric: {"discriminator": ENCODER, "generator": SIZES["generator"]},
    CocoLM: {
        "discriminator": {**ENCODER, "embedding_size": 16},
        "generator": SIZES["generator"],
    },
    Teams: {"discriminator": ENCODER, "generator_layers": 2},
}


@pytest.fixture
def larger(tokenizer):
    new = ["cats", "quickly", "##gs", "dogs"]
    return WordPieceTokenizer([*tokenizer.vocabulary, *new], **tokenizer.flags)


def parts_of(tokenizer):
    pieces = [["cat", "##s"], ["quick", "##ly"], ["[UNK]"], ["dog", "##s"]]
    return [[tokenizer.vocabulary.index(p) for p in parts] for parts in pieces]


def arrays_of(model):
    return {
        f"{name}/{weight}": np.array(variable)
        for name, network in model.networks.items()
        for weight, variable in named_weights(network).items()
    }


@pytest.mark.parametrize("system", MODELS)
def test_new_rows_are_means_and_the_rest_stays(system, tokenizer, larger, tmp_path):
    assert tokenizer.vocabulary_size == ENCODER["vocabulary_size"] - SPARE
    model = system(**MODELS[system], tokenizer=tokenizer)
    for variable in model.trainable_variables:  # biases begin at zero
        variable.assign(np.random.default_rng(1).normal(size=variable.shape))
    new = with_vocabulary(model, larger)
    assert (new.vocabulary_size, new.tokenizer) == (51, larger)
    before, after = arrays_of(model), arrays_of(new)
    assert before.keys() == after.keys()
    enlarged = 0
    for name, old in before.items():
        if 47 not in old.shape:
            np.testing.assert_array_equal(after[name], old, err_msg=name)
            continue
        enlarged += 1
        means = [old[ids].mean(axis=0) for ids in parts_of(tokenizer)]
        np.testing.assert_array_equal(after[name][:45], old[:45])
        np.testing.assert_allclose(after[name][45:49], means, rtol=1e-6)
        np.testing.assert_array_equal(after[name][49:], old[45:])
    assert enlarged >= 2  # a table of embeddings, and a bias
    # What was shared is one variable again.
    assert len(new.variables) == len(model.variables)
    new.save_to_preset(tmp_path / "preset")
    loaded = arrays_of(load_preset(tmp_path / "preset"))
    for name, array in after.items():
        np.testing.assert_array_equal(loaded[name], array)


def test_a_new_pieces_logit_is_the_mean_of_its_parts(tokenizer, larger):
    """The softmax is linear in its matrix and its bias."""
    model = MaskedLM(ENCODER, tokenizer=tokenizer)
    model.network.head.bias.assign(np.linspace(-1, 1, 47))
    new = with_vocabulary(model, larger)
    inputs = tokenizer.pack(["the cat sat on a mat"], 24)
    positions = np.array([[1, 3]], "int32")
    old, now = (np.array(m.network(inputs, positions)) for m in (model, new))
    np.testing.assert_allclose(now[..., :45], old[..., :45], rtol=1e-4, atol=1e-5)
    for i, parts in enumerate(parts_of(tokenizer)):
        mean = old[..., parts].mean(axis=-1)
        np.testing.assert_allclose(now[..., 45 + i], mean, rtol=1e-4, atol=1e-5)


def test_another_vocabulary_is_refused(tokenizer, larger):
    with pytest.raises(ValueError, match="model's vocabulary first"):
        with_vocabulary(MaskedLM(ENCODER, mask_id=4, unmaskable_ids=(0,)), larger)
    with pytest.raises(ValueError, match="model's vocabulary first"):
        with_vocabulary(
            MaskedLM({**ENCODER, "vocabulary_size": 49}, tokenizer=larger), tokenizer
        )
