"""What fine-tuning refuses before anything is made."""

import dataclasses

import numpy as np
import pytest

from keras_corrupt.commands.frame import in_flags
from keras_corrupt.downstream import finetune
from keras_corrupt.downstream.finetuner import Finetuner
from tests.downstream.conftest import animals


@pytest.mark.parametrize(
    "field, value, message",
    [
        ("seeds", 0, "--seeds 0 must be at least 1"),
        ("retries", -1, "--retries -1 must be at least 0"),
        ("max_length", 4, "--max_length 4 must be at least 8"),
        ("max_train_examples", -3, "--max_train_examples -3 must be at least 1"),
        ("max_train_examples", 0, "--max_train_examples 0 must be at least 1"),
        ("max_dev_examples", 0, "--max_dev_examples 0 must be at least 1"),
        ("ensemble", 3, "`ensemble` is 3, but there are 2 runs: raise `seeds`"),
        ("settings", {"learning_rate": float("nan")}, "`settings`: .*must be above 0"),
        ("settings", {"report": "foo"}, "`report` must be last or best; got 'foo'"),
        ("preset", "tiny", "'tiny' has no tokenizer. Name the directory of a model"),
        ("output", "x" * 300, "x cannot hold results: File name too long.*`output`"),
        ("output", __file__, "test_bad_values.py cannot hold results: .*`output`"),
    ],
)
def test_values_that_cannot_work(config, tmp_path, field, value, message):
    with pytest.raises((ValueError, OSError), match=message):
        finetune([animals()], dataclasses.replace(config, **{field: value}))
    assert not list(tmp_path.iterdir())


def test_a_directory_that_cannot_be_written_is_named(config, monkeypatch):
    def refuse(dir):
        raise PermissionError(13, "Permission denied", str(dir))

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    with pytest.raises(OSError, match="out cannot hold results: Permission denied. Ch"):
        finetune([animals()], config)


@pytest.mark.parametrize("name", ["../../evil", "..", "", "a/b", "a" * 300, "a\0"])
def test_a_name_that_is_no_folders_is_refused(config, name):
    task = animals()
    task.name = name
    with pytest.raises(ValueError, match="`name` must be 1 to 100 bytes"):
        Finetuner(task, config)


def test_messages_are_in_the_words_of_the_command_line(config):
    config = dataclasses.replace(config, preset="runs/x", output="./out/")
    for message, expected in {
        "`seeds` must be 1.": "--seeds must be 1.",
        'Give `search=True` or `dtype="float32"`.': "Give --search or --dtype float32.",
        "runs/x/config.json is bad.": "--preset runs/x/config.json is bad.",
        "runs/xyz is bad.": "runs/xyz is bad.",
        "out/a: `other` fails.": "--output out/a: `other` fails.",
    }.items():
        assert in_flags(message, config) == expected


def test_no_more_positions_are_read_than_the_encoder_has(config):
    finetuner = Finetuner(animals(), dataclasses.replace(config, max_length=512))
    assert finetuner.new_model().max_length == 24
    assert "24 tokens at most, which is all that the encoder reads, not 512" in (
        finetuner.banner()
    )
    assert finetuner.identity(finetuner.settings, 0)["max_length"] == 24
    finetuner = Finetuner(animals(), dataclasses.replace(config, max_length=16))
    assert finetuner.new_model().max_length == 16


def test_a_part_of_one_label_is_refused(config):
    task = animals()
    train = task.splits["train"]
    task.splits["train"] = train.rows(np.argsort(train.labels, kind="stable"))
    config = dataclasses.replace(config, max_train_examples=4)
    with pytest.raises(ValueError, match="first 4 .* of animals have one label alone"):
        finetune([task], config)
