import random

import pytest

from keras_corrupt.data.prepare import prepare_dataset

WORDS = [f"{a}{b}{c}" for a in "bcdfg" for b in "aeiou" for c in "lmnrst"]


def _write_corpus(path, documents=60, seed=0):
    rng = random.Random(seed)
    text = "\n\n".join(
        "\n".join(
            " ".join(rng.choices(WORDS, k=rng.randint(3, 40)))
            for _ in range(rng.randint(1, 12))
        )
        for _ in range(documents)
    )
    path.write_text(text + "\n")
    return str(path)


@pytest.fixture(scope="session")
def write_corpus():
    """A function that writes a text file of random words at a path."""
    return _write_corpus


@pytest.fixture(scope="session")
def settings():
    """Arguments of `prepare_dataset` for the small corpus."""
    return {
        "vocabulary_size": 120,
        "sequence_length": 32,
        "validation_fraction": 0.1,
        "workers": 1,
        "progress": False,
    }


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    _write_corpus(folder / "a.txt", seed=1)
    _write_corpus(folder / "b.txt", seed=2)
    return str(folder / "*.txt")


@pytest.fixture(scope="session")
def prepared(corpus, settings, tmp_path_factory):
    output = tmp_path_factory.mktemp("prepared") / "examples"
    return prepare_dataset(corpus, output, shard_bytes=20_000, **settings)
