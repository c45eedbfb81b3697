"""Whatever stands in presets and records, it is read or refused with a `ValueError`.

FUZZ_EXAMPLES=10000 tries more, and others each time.
"""

import contextlib
import json
import os
import shutil
import time

import pytest
import tensorflow as tf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keras_corrupt.data import (
    DatasetError,
    make_dataset,
    prepare_dataset,
)
from keras_corrupt.data.info import INFO_FILE
from keras_corrupt.models import MaskedLM
from keras_corrupt.presets import load_preset
from keras_corrupt.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer
from tests.hostile.bad_input import MOST_BYTES, MOST_SECONDS, peak

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


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    (folder / "vocab.txt").write_text("\n".join([*SPECIAL_TOKENS, "the", "cat"]))
    (folder / "corpus.txt").write_text("the cat\n" * 20)
    return prepare_dataset(
        folder / "corpus.txt",
        folder / "sound",
        vocabulary=folder / "vocab.txt",
        documents="lines",
        sequence_length=8,
        validation_fraction=0.5,
        workers=1,
        progress=False,
    )


@pytest.fixture(scope="module")
def examples(sound):
    return shutil.copytree(sound.directory, sound.directory.with_name("examples"))


def read_all(directory):
    """Reads the validation examples; whatever is read is sound."""
    for batch in make_dataset(directory, "validation", batch_size=2):
        ids, mask = batch["token_ids"], batch["padding_mask"]
        assert ids.shape[1] == 8 and ids.min() >= 0 and ids.max() < 7
        assert set(mask.ravel()) <= {0, 1} and mask[:, 0].all()


@given(data=st.data())
@fuzz
def test_any_bytes_of_a_shard(sound, examples, data):
    file = sound.validation.shards[0].file
    content = (sound.directory / file).read_bytes()
    changed = changed_bytes(content, data, 64)
    # Of the size that is recorded, so that the bytes themselves are looked at.
    (examples / file).write_bytes(changed.ljust(len(content), b"\0")[: len(content)])
    with contextlib.suppress(DatasetError):
        read_all(examples)


@given(data=st.data())
@fuzz
def test_any_record(sound, examples, data):
    """Records whose checksums are right, whatever they hold."""
    split = sound.validation
    file = sound.directory / split.shards[0].file
    records = [r.numpy() for r in tf.data.TFRecordDataset(str(file))]
    place = data.draw(st.integers(0, len(records) - 1))
    records[place] = changed_bytes(records[place], data, 16)
    path = examples / file.name
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in records:
            writer.write(record)
    content = json.loads((sound.directory / INFO_FILE).read_text())
    content["validation"]["shards"][0]["bytes"] = path.stat().st_size
    (examples / INFO_FILE).write_text(json.dumps(content))
    with contextlib.suppress(DatasetError):
        read_all(examples)
