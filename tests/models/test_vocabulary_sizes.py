"""A tokenizer sizes new weights, and what errors advise about sizes works."""

import ast
import re

import pytest

from keras_corrupt import models
from keras_corrupt.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer

SYSTEMS = (
    *("AdversarialElectra", "AllTokensMLM", "CocoLM", "Electra", "ElectraTT"),
    *("Electric", "MaskedLM", "ReplaceMLM", "Teams", "TwoTower", "UnigramElectra"),
)


def tokenizer_of(size):
    words = [f"w{number}" for number in range(size - len(SPECIAL_TOKENS))]
    return WordPieceTokenizer([*SPECIAL_TOKENS, *words])


def rows(model):
    """The first dimensions of the weights; the preset has 8,192 tokens."""
    return {weight.shape[0] for weight in model.weights if weight.shape}


def advised(message):
    """The arguments that a message says to pass."""
    name, value = re.search(r"[Pp]ass (\w+)=(\{.*?\})", message).groups()
    return {name: ast.literal_eval(value)}


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_tokenizer_sizes_new_weights(system):
    model = getattr(models, system).from_preset("tiny", tokenizer=tokenizer_of(9000))
    assert model.vocabulary_size == 9000
    assert rows(model) >= {9000} and 8192 not in rows(model)


def test_a_small_tokenizer_makes_a_small_vocabulary():
    model = models.MaskedLM.from_preset("tiny", tokenizer=tokenizer_of(300))
    assert model.vocabulary_size == 300 and rows(model) >= {300}


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_networks_argument_is_named_where_it_belongs(system):
    cls = getattr(models, system)
    with pytest.raises(ValueError, match="no argument 'vocabulary_size'") as error:
        cls.from_preset("tiny", vocabulary_size=9000)
    model = cls.from_preset("tiny", **advised(str(error.value)))
    assert rows(model) >= {9000} and 8192 not in rows(model)


def test_what_a_tokenizer_is_too_large_for(sizes, tmp_path):
    with pytest.raises(ValueError, match="60 tokens, more than the .*=50") as error:
        models.Electra(**sizes, tokenizer=tokenizer_of(60))
    sizes["discriminator"] |= advised(str(error.value))["discriminator"]
    model = models.Electra(**sizes, tokenizer=tokenizer_of(60))
    assert model.vocabulary_size == 60
    models.Electra(**sizes).save_to_preset(tmp_path / "preset")
    with pytest.raises(ValueError, match="or else the tokenizer that they were train"):
        models.Electra.from_preset(tmp_path / "preset", tokenizer=tokenizer_of(70))


def test_arguments_that_are_none(sizes, tmp_path):
    models.Electra(**sizes).save_to_preset(tmp_path / "preset")
    with pytest.raises(ValueError, match="'vocabulary_size'. The weights decide it"):
        models.Electra.from_preset(tmp_path / "preset", vocabulary_size=60)
    for preset in ("tiny", tmp_path / "preset"):
        with pytest.raises(ValueError, match="'mask_ratio'. It has .*mask_rate"):
            models.Electra.from_preset(preset, mask_ratio=0.2)
    with pytest.raises(ValueError, match="'max_length'.*pass") as error:
        models.Electra.from_preset(tmp_path / "preset", max_length=48)
    long = models.Electra.from_preset(tmp_path / "preset", **advised(str(error.value)))
    assert long.max_length == 48
