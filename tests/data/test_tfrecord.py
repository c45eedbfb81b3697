"""Files that TensorFlow reads, and that it would have written."""

import numpy as np
import tensorflow as tf

from keras_corrupt.data.tfrecord import RecordFile, frames, unframed

SIZES = (0, 1, 2, 3, 4, 5, 8, 300, 4095, 4096, 4097, 4099, 9000)


def test_the_bytes_are_tensorflow_s(tmp_path):
    records = [np.random.default_rng(size).bytes(size) for size in SIZES]
    path = tmp_path / "theirs"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in records:
            writer.write(record)
    assert frames(records) == path.read_bytes()
    file = RecordFile(path)
    found, sound = unframed([file.frame(number) for number in range(len(file))])
    assert found == records and sound.all()


def test_each_changed_byte_shows():
    records = [bytes(range(40)), b"abc", b"x"]
    framed = [frames([record]) for record in records]
    for number, frame in enumerate(framed):
        # A changed length would show when the file is opened, or by its checksum here.
        for place in range(len(frame)):
            changed = bytearray(frame)
            changed[place] ^= 1 << place % 8
            _, sound = unframed(
                [*framed[:number], bytes(changed), *framed[number + 1 :]]
            )
            assert sound.tolist() == [other != number for other in range(3)]
