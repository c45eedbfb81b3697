"""Whatever stands in a preset's files, it is loaded or refused with a `ValueError`.

FUZZ_EXAMPLES=10000 tries more, and others each time.
"""

import json
import os
import shutil
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keras_corrupt.downstream.model import load_preset
from keras_corrupt.models import MaskedLM
from keras_corrupt.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer
from tests.hostile.bad_input import MOST_BYTES, MOST_SECONDS, peak

pytestmark = pytest.mark.tensorflow_only  # No backend reads files.

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", 0))
fuzz = settings(
    max_examples=EXAMPLES or 50,
    derandomize=not EXAMPLES,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

NUMBERS = st.one_of(
    st.integers(),
    st.sampled_from([0, 1, 2, 10**6, 10**12, -(10**6), 1 << 63, 10**30]),
    st.floats(),
)
LEAVES = st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=10))
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(max_size=8), inner, max_size=3),
    ),
    max_leaves=5,
)


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    sizes = {"num_layers": 1, "hidden_size": 4, "intermediate_size": 4, "num_heads": 1}
    words = WordPieceTokenizer([*SPECIAL_TOKENS, "the", "cat", "##s"])
    model = MaskedLM({"vocabulary_size": 8, "max_length": 8, **sizes}, tokenizer=words)
    directory = tmp_path_factory.mktemp("good") / "preset"
    model.save_to_preset(directory)
    return directory


@pytest.fixture(scope="module")
def preset(good):
    shutil.copytree(good, good.with_name("changed"))
    return good.with_name("changed")


def check(preset, good, name, content):
    """Loads the preset with another content of a file, which it then sets back."""
    start, before = time.monotonic(), peak()
    (preset / name).write_bytes(content)
    try:
        load_preset(preset)
    except ValueError as error:
        assert str(preset) in str(error)
    finally:
        shutil.copy(good / name, preset / name)
    assert time.monotonic() - start < MOST_SECONDS and peak() - before < MOST_BYTES


def changed_json(content, data):
    """Changes or removes one entry of a JSON value, at any depth."""
    while True:
        keys = list(content if isinstance(content, dict) else range(len(content)))
        key = data.draw(st.sampled_from(keys))
        inner = content[key]
        if not (isinstance(inner, (dict, list)) and inner) or data.draw(st.booleans()):
            break
        content = inner
    if data.draw(st.integers(0, 4)):
        content[key] = data.draw(VALUES)
    else:
        del content[key]


def changed_bytes(content, data, first):
    """Replaces, removes or repeats a few bytes, mostly among the first ones."""
    for _ in range(data.draw(st.integers(1, 3))):
        end = data.draw(st.sampled_from([min(first, len(content)), len(content)]))
        start = data.draw(st.integers(0, end))
        stop = start + data.draw(st.integers(0, 8))
        content = content[:start] + data.draw(st.binary(max_size=8)) + content[stop:]
    return content


@pytest.mark.parametrize("name", ["config.json", "tokenizer_settings.json"])
@given(data=st.data())
@fuzz
def test_any_entry_of_a_json_file(preset, good, name, data):
    content = json.loads((good / name).read_text())
    changed_json(content, data)
    check(preset, good, name, json.dumps(content).encode())


@pytest.mark.parametrize(
    "name",
    [
        *("config.json", "tokenizer_settings.json", "vocab.txt"),
        "masked_lm/model.safetensors",
    ],
)
@given(data=st.data())
@fuzz
def test_any_bytes_of_a_file(preset, good, name, data):
    content = (good / name).read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    check(preset, good, name, changed_bytes(content, data, header))
