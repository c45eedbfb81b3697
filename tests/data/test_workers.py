"""Processes that build examples, and how many."""

import concurrent.futures
import os
import signal
import time

import numpy as np
import pytest

from keras_corrupt.data import workers
from keras_corrupt.data.chunks import read_chunks
from keras_corrupt.data.corpus import open_corpus
from keras_corrupt.data.workers import default_workers, encode_chunks
from keras_corrupt.tokenizers import load

OPTIONS = {"max_length": 32, "validation_fraction": 0.2, "seed": 3}


@pytest.fixture
def encode(prepared, corpus):
    """Encodes the corpus in chunks of a kilobyte."""
    tokenizer = load(prepared.directory)

    def encode(workers):
        chunks = [
            chunk
            for number, source in enumerate(open_corpus(corpus))
            for chunk in read_chunks(source, number, chunk_bytes=1000)
        ]
        return list(encode_chunks(chunks, tokenizer, workers, **OPTIONS))

    return encode


def check_same(one, other):
    assert len(one) == len(other) > 20
    for a, b in zip(one, other, strict=True):
        assert (a.train, a.validation) == (b.train, b.validation)
        np.testing.assert_array_equal(a.token_ids, b.token_ids)
        np.testing.assert_array_equal(a.token_counts, b.token_counts)


def test_other_processes_build_the_same(encode, monkeypatch):
    """And Ctrl-C, which a terminal sends to all of them, does not reach them."""
    submit, submitted = workers._submit, []

    def submit_to_started(pool, function, *arguments, **options):
        future = submit(pool, function, *arguments, **options)
        if function is os.getpid:
            os.kill(future.result(timeout=60), signal.SIGINT)
        else:
            submitted.append(future)
        return future

    monkeypatch.setattr(workers, "_submit", submit_to_started)
    found = encode(workers=2)
    assert len(submitted) > 2
    check_same(found, encode(workers=1))


def test_others_that_have_not_started_are_not_waited_for(encode, monkeypatch):
    def sleep(pool, *_):
        pool.submit(time.sleep, 1000)
        return concurrent.futures.Future()

    monkeypatch.setattr(workers, "_submit", sleep)
    check_same(encode(workers=2), encode(workers=1))


@pytest.mark.parametrize(
    "sizes, cpus, expected",
    [
        ([3_000_000], 16, 1),
        ([3_000_000, 2_000_000], 1, 1),
        ([3_000_000, 2_000_000], 2, 2),
        ([10**12], 16, 4),
        ([0], 16, 4),  # which means that it is not known
        ([0, 10], 2, 2),
    ],
)
def test_as_many_processes_as_are_worth_it(sizes, cpus, expected, monkeypatch):
    class Sized:
        def __init__(self, size):
            self.size = size

    monkeypatch.setattr(workers, "available_cpus", lambda: cpus)
    assert default_workers(list(map(Sized, sizes))) == expected
