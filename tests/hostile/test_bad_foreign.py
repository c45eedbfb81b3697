"""Somebody's directory of another library is converted, or refused in one line."""

import os

import numpy as np
import pytest
from safetensors.numpy import load_file

from keras_corrupt.presets import load_preset
from tests.hostile.bad_input import refusal
from tests.hostile.foreign_cases import CASES, good_ones
from tests.hostile.preset_cases import bad_preset

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*head on it is new"),
    pytest.mark.filterwarnings("ignore:The preset has no generator"),
]


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return good_ones(tmp_path_factory.mktemp("good"))


@pytest.mark.parametrize(
    ("kind", "case"), [(kind, case) for kind, cases in CASES.items() for case in cases]
)
def test_it_is_refused(kind, case, good, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with bad_preset(good[kind], tmp_path, CASES[kind][case]) as directory:
        refusal(load_preset, directory)
    assert not os.path.exists("bombed")


@pytest.mark.parametrize("kind", ["hugging_face", "keras_hub", "model_garden"])
def test_the_good_ones_are_read(kind, good):
    def table(directory):
        return np.array(load_preset(directory).encoder.embeddings.token.embeddings)

    if kind == "hugging_face":
        arrays = load_file(good[kind] / "model.safetensors")
        (expected,) = [array for name, array in arrays.items() if "word_emb" in name]
    else:
        expected = table(good[kind].parent / "preset")
    np.testing.assert_array_equal(table(good[kind]), expected)
