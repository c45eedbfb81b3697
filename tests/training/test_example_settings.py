"""The examples of a run: what it reads, and what it says of those it cannot."""

import dataclasses
import json
import os
import re
import shutil
import struct
import tempfile
from pathlib import Path

import pytest

from keras_corrupt.data import DatasetError
from keras_corrupt.training import (
    main,
    pretrain,
    pretraining,
    starting,
)
from tests.training.conftest import command_line

pytestmark = pytest.mark.usefixtures("presets")


@pytest.mark.parametrize("damage", ["flipped", "foreign"])
def test_a_record_that_cannot_be_read(config, prepared, tmp_path, monkeypatch, damage):
    """Found out while training, in one line that names the file."""
    data = tmp_path / "data"
    shutil.copytree(prepared.directory, data)
    for shard in prepared.train.shards:
        content = bytearray((data / shard.file).read_bytes())
        if damage == "flipped":
            content[len(content) // 2] ^= 255
        else:
            content = with_records_of(content, b"\xff")
        (data / shard.file).write_bytes(content)
    config = dataclasses.replace(config, model="MaskedLM", data=str(data), steps=200)
    monkeypatch.setattr("sys.argv", ["recipe.py", *command_line(config)])
    with pytest.raises(SystemExit) as caught:
        main(config, "A recipe.")
    error = str(caught.value.code)
    assert error.count("\n") == 0
    assert re.match(rf"Error: {data}/train-\d+.tfrecord: .*again", error), error


def with_records_of(content, byte):
    """Returns a shard whose records are all of one byte, with right checksums."""
    import tensorflow as tf

    with tempfile.NamedTemporaryFile() as file:
        with tf.io.TFRecordWriter(file.name) as writer:
            offset = 0
            while offset < len(content):
                (length,) = struct.unpack_from("<Q", content, offset)
                writer.write(byte * length)
                offset += length + 16
        return Path(file.name).read_bytes()


class Started(Exception):
    """Training would begin."""


def test_what_separates_documents_reaches_the_examples(config, corpus, monkeypatch):
    asked = {}

    def prepare(*_, **settings):
        asked.update(settings)
        raise Started

    monkeypatch.setattr(starting, "prepare_dataset", prepare)
    changes = {"data": None, "corpus": (corpus,), "documents": "lines"}
    with pytest.raises(Started):
        pretrain(dataclasses.replace(config, **changes))
    assert asked["documents"] == "lines"


@pytest.mark.parametrize("made", ["by the run", "before"])
def test_a_moved_project_goes_on(
    config, prepared, finished, write_corpus, tmp_path, monkeypatch, made
):
    """All its files have other paths and times; what is in them counts."""

    def start(*_):
        raise Started

    def of(folder):
        corpus = (str(folder / "en.txt"),) if made == "by the run" else ()
        return dataclasses.replace(
            config,
            corpus=corpus,
            data=None if corpus else str(folder / "prepared"),
            mix=((str(folder / "old.txt"), 0.25),),
            init_from=str(folder / "preset"),
            output=str(folder / "run"),
        )

    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    write_corpus(before / "en.txt", seed=1)
    write_corpus(before / "old.txt", seed=2)
    shutil.copytree(prepared.directory, before / "prepared")
    shutil.copytree(finished.directory / "preset", before / "preset")
    monkeypatch.setattr(pretraining, "build", start)
    with pytest.raises(Started):
        pretrain(of(before))
    before.rename(after)
    for path in after.rglob("*"):
        os.utime(path)
    with pytest.raises(Started):
        pretrain(of(after))

    with (after / "preset" / "config.json").open("a") as file:
        file.write("\n")
    with pytest.raises(ValueError, match="has another --init_from than the run"):
        pretrain(of(after))
    write_corpus(after / "old.txt", seed=3)
    with pytest.raises(DatasetError, match=r"old\.txt: was not there"):
        pretrain(of(after))


def test_a_short_run_reads_examples_that_are_there(config, prepared):
    config = dataclasses.replace(config, sequence_length=64)
    assert dataclasses.replace(config, data=None).shrunk().sequence_length == 32
    config = dataclasses.replace(config, data=str(prepared.directory))
    assert config.shrunk().sequence_length == 64


def test_a_run_of_a_version_with_another_order(config, finished):
    shutil.copytree(finished.directory, config.output)
    path = Path(config.output) / "run.json"
    settings = json.loads(path.read_text())
    del settings["order_of_examples"]  # earlier versions had no such setting
    path.write_text(json.dumps(settings))
    with pytest.raises(ValueError, match="another order: go on with that version"):
        pretrain(config)
