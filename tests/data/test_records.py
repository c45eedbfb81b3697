import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from keras_corrupt.data.examples import Example
from keras_corrupt.data.features import RecordFormat
from keras_corrupt.data.info import DatasetError
from keras_corrupt.data.pipeline import make_dataset
from keras_corrupt.data.record_files import check_records, count_records
from keras_corrupt.data.records import _varint, parse, serialize


def write(path, records):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in records:
            writer.write(record)
    return str(path)


def message(**features):
    def feature(values):
        if isinstance(values[0], float):
            return tf.train.Feature(float_list=tf.train.FloatList(value=values))
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    feature_map = {name: feature(values) for name, values in features.items()}
    features = tf.train.Features(feature=feature_map)
    return tf.train.Example(features=features).SerializeToString()


def model_garden(word_ids="input_word_ids", type_ids="input_type_ids", first=2):
    return message(
        **{word_ids: [first, 4, 8, 4, 3, 0], type_ids: [0, 0, 0, 1, 1, 0]},
        input_mask=[1, 1, 1, 1, 1, 0],
        masked_lm_positions=[1, 3, 0],
        masked_lm_ids=[7, 9, 0],
        masked_lm_weights=[1.0, 1.0, 0.0],
    )


@given(st.lists(st.integers(0, 2**40), max_size=300), st.integers(0, 300))
def test_serialize_is_the_protocol_buffer(token_ids, split):
    segment_ids = [int(place >= split) for place in range(len(token_ids))]
    features = tf.train.Example.FromString(
        serialize(Example(token_ids, segment_ids))
    ).features.feature
    assert sorted(features) == ["segment_ids", "token_ids"]
    assert list(features["token_ids"].int64_list.value) == token_ids
    assert list(features["segment_ids"].int64_list.value) == segment_ids


def test_serialising_needs_no_tensorflow():
    script = (
        "import sys; import keras_corrupt.data.chunks; "
        "sys.exit(bool({'tensorflow', 'keras', 'jax'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


def test_ids_of_large_vocabularies():
    ids = [2, 65_535, 65_536, 63_999, 250_001, 3]
    record = serialize(Example(ids, [0] * 6))
    batch = parse([record], RecordFormat("examples"), 6, 250_002)
    assert batch["token_ids"].tolist() == [ids]


def test_parse_pads():
    examples = [
        Example([2, 300, 3], [0, 0, 0]),
        Example([2, 5, 3, 6, 3], [0] * 3 + [1] * 2),
    ]
    batch = parse(list(map(serialize, examples)), RecordFormat("examples"), 6, 301)
    expected = {
        "token_ids": [[2, 300, 3, 0, 0, 0], [2, 5, 3, 6, 3, 0]],
        "segment_ids": [[0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 1, 0]],
        "padding_mask": [[1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 0]],
    }
    assert sorted(batch) == sorted(expected)
    for name, values in expected.items():
        assert batch[name].dtype == np.int32
        np.testing.assert_array_equal(batch[name], values)


@given(
    st.lists(st.lists(st.integers(0, 300_000), min_size=1, max_size=40), min_size=1),
    st.randoms(use_true_random=False),
)
def test_parse_reads_what_was_written(token_ids, random):
    """Also what others write: the features in another order, or numbers not packed."""
    segment_ids = [sorted(random.choices((0, 1), k=len(ids))) for ids in token_ids]
    records = list(map(serialize, map(Example, token_ids, segment_ids)))
    for number in random.sample(range(len(records)), len(records) // 4):
        records[number] = unpacked(
            token_ids=token_ids[number], segment_ids=segment_ids[number]
        )
    batch = parse(records, RecordFormat("examples"), 40, 300_001)
    lengths = batch["padding_mask"].sum(axis=1)
    for name, lists in (("token_ids", token_ids), ("segment_ids", segment_ids)):
        rows = [r[:n].tolist() for r, n in zip(batch[name], lengths, strict=True)]
        assert rows == lists and not (batch[name] * (1 - batch["padding_mask"])).any()


def unpacked(**features):
    """Returns a message in which each number has a tag of its own."""

    def field(tag, content):
        return tag + _varint(len(content)) + content

    written = b""
    for name, values in features.items():
        numbers = b"".join(b"\x08" + _varint(value) for value in values)
        value = field(b"\x12", field(b"\x1a", numbers))
        written += field(b"\x0a", field(b"\x0a", name.encode()) + value)
    return field(b"\x0a", written)


@pytest.mark.parametrize("word_ids", ["input_word_ids", "input_ids"])
@pytest.mark.parametrize("type_ids", ["input_type_ids", "segment_ids"])
def test_model_garden_records_are_unmasked(tmp_path, word_ids, type_ids):
    write(tmp_path / "a.tfrecord", [model_garden(word_ids, type_ids)] * 3)
    dataset = make_dataset(
        tmp_path, "validation", batch_size=2, max_length=8, vocabulary_size=10
    )
    batches = list(dataset)
    assert [len(batch["token_ids"]) for batch in batches] == [2, 1]
    expected = {
        # Position 0 has weight 0: [CLS] stays.
        "token_ids": [2, 7, 8, 9, 3, 0, 0, 0],
        "segment_ids": [0, 0, 0, 1, 1, 0, 0, 0],
        "padding_mask": [1, 1, 1, 1, 1, 0, 0, 0],
        "masked_positions": [1, 3, 0],
        "masked_weights": [1.0, 1.0, 0.0],
    }
    assert sorted(batches[0]) == sorted(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(batches[0][name][0], values)
    assert batches[0]["masked_weights"].dtype == np.float32


def test_model_garden_training_resumes(tmp_path):
    for file in range(2):
        records = [model_garden(first=10 + 5 * file + number) for number in range(5)]
        write(tmp_path / f"{file}.tfrecord", records)
    options = dict(batch_size=4, seed=5)
    batches = [
        batch["token_ids"][:, 0].tolist()
        for batch in make_dataset(tmp_path, **options).take(6)
    ]
    stream = sum(batches, [])
    assert sorted(stream[:10]) == sorted(stream[10:20]) == list(range(10, 20))
    resumed = make_dataset(tmp_path, start_step=3, **options).take(3)
    assert [b["token_ids"][:, 0].tolist() for b in resumed] == batches[3:]


def test_ids_outside_the_vocabulary(tmp_path):
    path = write(tmp_path / "a.tfrecord", [model_garden(first=10)])
    with pytest.raises(DatasetError, match=r"a\.tfrecord.*to 10.*vocabulary_size=10"):
        check_records([path], vocabulary_size=10)
    late = [model_garden()] * 300 + [model_garden(first=10)]
    write(tmp_path / "a.tfrecord", late)
    dataset = make_dataset(path, "validation", batch_size=50, vocabulary_size=10)
    match = r"a\.tfrecord: record 301: token ids .* to 10.*vocabulary_size=10"
    with pytest.raises(DatasetError, match=match):
        list(dataset)


def test_too_long_sequences(tmp_path):
    path = write(tmp_path / "a.tfrecord", [model_garden()])
    with pytest.raises(DatasetError, match=r"6 tokens, more than max_length=5"):
        check_records([path], max_length=5)


def test_count_records(tmp_path):
    records = [b"x" * length for length in range(0, 500, 7)]
    assert count_records(write(tmp_path / "a", records)) == len(records)


@pytest.mark.parametrize("removed", [1, 4, 20, 100])
def test_cut_files(tmp_path, removed):
    path = tmp_path / "a.tfrecord"
    write(path, [model_garden()] * 3)
    path.write_bytes(path.read_bytes()[:-removed])
    with pytest.raises(DatasetError, match=r"a\.tfrecord: is cut short: record 3"):
        check_records([str(path)])


@pytest.mark.parametrize(
    ("content", "problem"),
    [(b"", "is empty"), (b"text\n" * 99, "no TFRecord file"), (b"\0", "no TFRecord")],
)
def test_files_of_something_else(tmp_path, content, problem):
    (tmp_path / "a.tfrecord").write_bytes(content)
    with pytest.raises(DatasetError, match=rf"a\.tfrecord.*{problem}"):
        make_dataset(tmp_path, batch_size=1)


def test_foreign_records(tmp_path):
    path = write(tmp_path / "a.tfrecord", [message(image=[1], label=[2])])
    with pytest.raises(DatasetError, match=r"features \['image', 'label'\]"):
        check_records([path])
    write(path, [b"\xff\xff no message"])
    with pytest.raises(DatasetError, match=r"a\.tfrecord.*no tf\.train\.Example"):
        check_records([path])
    flipped = bytearray((tmp_path / "a.tfrecord").read_bytes())
    flipped[14] ^= 255
    (tmp_path / "a.tfrecord").write_bytes(flipped)
    with pytest.raises(DatasetError, match=r"a\.tfrecord: record 1: its checksum"):
        check_records([path])


def test_files_of_two_kinds(tmp_path):
    paths = [
        write(tmp_path / "a", [model_garden()]),
        write(tmp_path / "b", [model_garden("input_ids")]),
    ]
    with pytest.raises(DatasetError, match=r"b: its records are .*input_ids"):
        check_records(paths)
