from collections import Counter

import numpy as np
import pytest
import tensorflow as tf

from keras_corrupt.data.info import load_dataset_info
from keras_corrupt.data.plan import Plan

beam = pytest.importorskip("keras_corrupt.data.beam", exc_type=ImportError)


def records(info, split):
    return Counter(
        record.numpy()
        for shard in info.split(split).shards
        for record in tf.data.TFRecordDataset(str(info.directory / shard.file))
    )


def test_same_examples_as_on_one_machine(prepared, corpus, tmp_path):
    plan = Plan(corpus, vocabulary_size=120, max_length=32, validation_fraction=0.1)
    output = tmp_path / "examples"
    info = beam.prepare_dataset_with_beam(plan, output, num_shards=2)
    for split in ("train", "validation"):
        assert records(info, split) == records(prepared, split)
        for count in ("documents", "examples", "tokens", "text_bytes"):
            assert getattr(info.split(split), count) == getattr(
                prepared.split(split), count
            )
    np.testing.assert_array_equal(info.unigrams(), prepared.unigrams())
    assert info.tokenizer_fingerprint == prepared.tokenizer_fingerprint
    info.check_shards()
    assert beam.prepare_dataset_with_beam(plan, output, num_shards=2) == info
    assert load_dataset_info(output) == info


def test_unknown_flags_are_errors(corpus, tmp_path, capsys):
    flags = ["--corpus", corpus, "--output", str(tmp_path / "x")]
    with pytest.raises(SystemExit):
        beam.main([*flags, "--vocabulary-sise=3"])
    assert "unknown flag --vocabulary-sise=3" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
