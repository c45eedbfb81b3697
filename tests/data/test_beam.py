import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from keras_corrupt.data.info import load_dataset_info
from keras_corrupt.data.plan import Plan
from keras_corrupt.data.prepare import prepare_dataset

beam = pytest.importorskip("keras_corrupt.data.beam", exc_type=ImportError)


def records(info, split):
    return Counter(
        record.numpy()
        for shard in info.split(split).shards
        for record in tf.data.TFRecordDataset(str(info.directory / shard.file))
    )


def test_same_examples_as_on_one_machine(prepared, corpus, settings, tmp_path):
    names = ("vocabulary_size", "sequence_length", "validation_fraction")
    plan = Plan(corpus, **{name: settings[name] for name in names})
    output = tmp_path / "examples"
    info = beam.prepare_dataset_with_beam(plan, output, num_shards=2)
    for split in ("train", "validation"):
        assert records(info, split) == records(prepared, split)
        for count in ("documents", "examples", "tokens", "words", "text_bytes"):
            assert getattr(info.split(split), count) == getattr(
                prepared.split(split), count
            )
    np.testing.assert_array_equal(info.unigrams(), prepared.unigrams())
    assert info.tokenizer_fingerprint == prepared.tokenizer_fingerprint
    info.check_files()
    assert beam.prepare_dataset_with_beam(plan, output, num_shards=2) == info
    assert load_dataset_info(output) == info


class TracedPlan(Plan):
    """Leaves the id of each process that encodes chunks in the folder $TRACE."""

    def __getattribute__(self, name):
        if name == "validation_fraction":
            (Path(os.environ["TRACE"]) / str(os.getpid())).touch()
        return super().__getattribute__(name)


def test_same_examples_with_several_processes(
    write_corpus, settings, tmp_path, monkeypatch
):
    # Each source is a chunk, the unit of parallel work.
    for seed in range(6):
        write_corpus(tmp_path / f"{seed}.txt", documents=25, seed=seed)
    corpus = str(tmp_path / "*.txt")
    alone = prepare_dataset(corpus, tmp_path / "alone", **settings)

    trace = tmp_path / "trace"
    trace.mkdir()
    monkeypatch.setenv("TRACE", str(trace))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    names = ("vocabulary_size", "sequence_length", "validation_fraction")
    plan = TracedPlan(corpus, **{name: settings[name] for name in names})
    # The name DirectRunner stands for a choice, which may fall on one that is
    # downloaded and runs in one process.
    runner = "apache_beam.runners.portability.fn_api_runner.FnApiRunner"
    options = [
        f"--runner={runner}",
        "--direct_running_mode=multi_processing",
        "--direct_num_workers=2",
    ]
    together = beam.prepare_dataset_with_beam(
        plan, tmp_path / "together", num_shards=3, beam_options=options
    )
    workers = {path.name for path in trace.iterdir()} - {str(os.getpid())}
    assert len(workers) == 2
    assert alone.train.documents + alone.validation.documents == 6 * 25
    for split in ("train", "validation"):
        assert records(together, split) == records(alone, split)
        for count in ("documents", "examples", "tokens", "words", "text_bytes"):
            assert getattr(together.split(split), count) == getattr(
                alone.split(split), count
            )
    np.testing.assert_array_equal(together.unigrams(), alone.unigrams())
    together.check_files()


def test_what_is_left_out_is_counted(write_corpus, settings, tmp_path):
    write_corpus(tmp_path / "a.txt")
    for name in ("b.jsonl", "c.jsonl"):
        (tmp_path / name).write_bytes(b'{"text": null}\n\xff\n{"text": "a"}\n{}\n')
    (tmp_path / "d.md").write_text("x")
    plan = Plan(
        str(tmp_path),
        vocabulary_size=120,
        validation_fraction=0.1,
        on_bad_bytes="skip",
        on_bad_rows="skip",
    )
    info = beam.prepare_dataset_with_beam(plan, tmp_path / "examples", num_shards=2)
    assert (info.skipped_lines, info.skipped_rows) == (2, 4)
    assert info.left_out == {"files ending in .md": [1, str(tmp_path / "d.md")]}


def test_unknown_flags_are_errors(corpus, tmp_path):
    flags = ["--corpus", corpus, "--output", str(tmp_path / "x")]
    with pytest.raises(SystemExit, match="unknown flag --vocabulary-sise=3"):
        beam.main([*flags, "--vocabulary-sise=3"])
    assert not (tmp_path / "x").exists()


def test_flags_are_spelled_as_messages_have_them(corpus, tmp_path):
    flags = ["--corpus", corpus, "--output", str(tmp_path / "x")]
    with pytest.raises(SystemExit, match="Error: .*validation_fraction"):
        beam.main([*flags, "--validation_fraction", "2"])
    assert not (tmp_path / "x").exists()
