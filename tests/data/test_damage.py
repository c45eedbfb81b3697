"""Records that are damaged or foreign end in one line that names file and record."""

import json
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_corrupt.data import DatasetError, make_dataset
from keras_corrupt.data.examples import Example
from keras_corrupt.data.info import load_dataset_info
from keras_corrupt.data.records import serialize
from keras_corrupt.devices.batches import fed
from keras_corrupt.tokenizers import load
from tests.conftest import SPECIAL


def example(**features):
    ids = {
        name: tf.train.Feature(int64_list=tf.train.Int64List(value=value))
        for name, value in features.items()
    }
    features = tf.train.Features(feature=ids)
    return tf.train.Example(features=features).SerializeToString()


@pytest.fixture
def copy(prepared, tmp_path):
    return shutil.copytree(prepared.directory, tmp_path / "copy")


def rewrite(directory, split, records):
    """Writes a split's only shard, so that sizes and counts are those recorded."""
    path = directory / "dataset.json"
    content = json.loads(path.read_text())
    shard = content[split]["shards"][0]
    file = directory / shard["file"]
    with tf.io.TFRecordWriter(str(file)) as writer:
        for record in records:
            writer.write(record)
    shard |= {"examples": len(records), "bytes": file.stat().st_size}
    content[split] |= {"shards": [shard], "examples": len(records)}
    path.write_text(json.dumps(content))
    return file


SOUND = serialize(Example([2, 7, 8, 3], [0, 0, 0, 0]))
DAMAGED = {
    "no features": (b"", "holds the features"),
    "no segment ids": (example(token_ids=[2, 7, 3]), "holds the features"),
    "empty": (example(token_ids=[], segment_ids=[]), "0 token ids"),
    "fewer segment ids": (
        example(token_ids=[2, 7, 3], segment_ids=[0, 0]),
        "3 token ids and 2 segment ids",
    ),
    "segment ids of 7": (serialize(Example([2, 7, 3], [7, 7, 7])), "neither 0 nor 1"),
    "ids outside": (serialize(Example([2, 120, 3], [0] * 3)), "vocabulary_size=120"),
    "negative": (example(token_ids=[2, -7, 3], segment_ids=[0] * 3), "from -7"),
    "huge ids": (serialize(Example([2, 1 << 60, 3], [0] * 3)), f"to {1 << 60}"),
    "too long": (serialize(Example([7] * 100, [0] * 100)), "100 tokens, more than"),
    "no message": (b"\xff\xff", "no tf.train.Example"),
    "no numbers": (SOUND.replace(b"\x1a", b"\x12"), "token ids|no tf"),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_records_are_checked_as_they_are_read(copy, kind):
    record, message = DAMAGED[kind]
    file = rewrite(copy, "validation", [SOUND] * 300 + [record, SOUND])
    dataset = make_dataset(copy, "validation", batch_size=4)
    match = rf"{file.name}: record 301.*({message})"
    with pytest.raises(DatasetError, match=match) as error:
        list(dataset)
    assert "\n" not in str(error.value)


def test_records_that_all_lack_segment_ids(copy):
    rewrite(copy, "validation", [example(token_ids=[7] * 32)] * 128)
    with pytest.raises(DatasetError, match="record 1: holds the features"):
        list(make_dataset(copy, "validation", batch_size=128))


def test_sound_records_pass(copy):
    longest = serialize(Example([2, *[119] * 30, 3], [0] * 31 + [1]))
    rewrite(copy, "validation", [SOUND, longest])
    (batch,) = make_dataset(copy, "validation", batch_size=4)
    assert batch["padding_mask"].sum(axis=1).tolist() == [4, 32]


def test_damage_within_fit(copy):
    """The error comes through Keras, whose backends read in different ways."""
    file = copy / "train-00001.tfrecord"
    flipped = bytearray(file.read_bytes())
    flipped[len(flipped) // 2] ^= 255
    file.write_bytes(flipped)
    inputs = keras.Input((32,), dtype="int32")
    outputs = keras.layers.Embedding(120, 2)(inputs)
    outputs = keras.layers.GlobalAveragePooling1D()(outputs)
    model = keras.Model(inputs, outputs)
    model.compile("sgd", "mse", jit_compile=False)
    dataset = make_dataset(copy, batch_size=16)
    dataset = dataset.map(lambda batch: (batch["token_ids"], np.zeros((16, 2))))
    match = r"train-00001\.tfrecord: record \d+: its checksum is another"
    with pytest.raises(DatasetError, match=match), fed(dataset) as batches:
        model.fit(batches, steps_per_epoch=500, verbose=0, shuffle=False)


def test_a_length_beyond_the_file(copy):
    """The library that reads the records would end the process."""
    file = copy / "train-00001.tfrecord"
    content = bytearray(file.read_bytes())
    content[:8] = (1 << 60).to_bytes(8, "little")
    file.write_bytes(content)
    with pytest.raises(DatasetError, match=r"train-00001.*record 1 would end behind"):
        make_dataset(copy, batch_size=4)


def test_a_shard_of_other_records(copy):
    file = copy / "validation.tfrecord"
    size = file.stat().st_size
    with tf.io.TFRecordWriter(str(file)) as writer:
        writer.write(b"x" * (size - 16))
    with pytest.raises(DatasetError, match="holds 1 records, but dataset.json says"):
        make_dataset(copy, "validation", batch_size=4)


def test_another_tokenizer_in_the_directory(copy):
    words = [f"w{number}" for number in range(115)]
    tokenizer = type(load(copy))([*SPECIAL, *words])
    assert tokenizer.vocabulary_size == load_dataset_info(copy).vocabulary_size
    tokenizer.save(copy)
    with pytest.raises(DatasetError, match=r"copy: the tokenizer there is not the one"):
        make_dataset(copy, batch_size=4)
    (copy / "vocab.txt").unlink()
    with pytest.raises(DatasetError, match=r"vocab\.txt: no such vocabulary file"):
        make_dataset(copy, batch_size=4)


def test_fingerprint_is_of_the_examples(prepared, copy):
    was = prepared.fingerprint
    assert load_dataset_info(copy).fingerprint == was and len(was) == 64
    path = copy / "dataset.json"
    content = json.loads(path.read_text())

    def changed(**changes):
        path.write_text(json.dumps(content | changes))
        return load_dataset_info(copy).fingerprint

    # What does not decide the batches does not count.
    assert changed(skipped_lines=9, corpus=[], segmentation=None) == was
    first, *rest = content["train"]["shards"]
    other = content["train"] | {"shards": [*rest, first]}
    variants = [
        changed(max_length=64),
        changed(tokenizer_fingerprint="0"),
        changed(train=other),
        changed(train=content["validation"], validation=content["train"]),
    ]
    assert len({was, *variants}) == 5


def test_digests_are_those_of_the_records(prepared):
    import hashlib

    for shard in prepared.train.shards:
        digest = hashlib.sha256()
        path = str(prepared.directory / shard.file)
        for record in tf.data.TFRecordDataset(path).as_numpy_iterator():
            digest.update(np.uint64(len(record)).tobytes() + record)
        assert shard.sha256 == digest.hexdigest()
