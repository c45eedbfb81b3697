"""Somebody's preset is loaded whole, or refused in one line that names it."""

import pytest

from keras_corrupt.models import Electra
from keras_corrupt.presets import load_preset
from keras_corrupt.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer
from tests.conftest import SIZES
from tests.hostile.bad_input import refusal
from tests.hostile.preset_cases import CASES, bad_preset


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    directory = tmp_path_factory.mktemp("good") / "preset"
    tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, "the", "cat"])
    sizes = {**SIZES, "discriminator": SIZES["discriminator"] | {"num_layers": 2}}
    Electra(**sizes, tokenizer=tokenizer).save_to_preset(directory)
    return directory


@pytest.mark.parametrize("case", CASES)
def test_a_bad_preset_is_refused(case, preset, tmp_path):
    with bad_preset(preset, tmp_path, CASES[case]) as directory:
        refusal(load_preset, directory)
