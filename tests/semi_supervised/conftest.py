import numpy as np
import pytest

from keras_corrupt.semi_supervised import CrossViewTagger

WORDS = "the a cat dog sat ran on under mat rug quick slow".split()
LETTERS = "abcdefghijklmnopqrstuvwxyz"
LABELS = ["D", "N", "V"]
SIZES = {
    "encoder": {
        "character_size": 4,
        "num_filters": 3,
        "hidden_sizes": [6, 5],
        "projection_size": 4,
    },
    "hidden_size": 7,
}


def make_tagger(**arguments):
    arguments = {"words": WORDS, "characters": LETTERS, "labels": LABELS} | arguments
    return CrossViewTagger(**{**SIZES, **arguments})


@pytest.fixture
def tagger():
    return make_tagger()


def sentences_of(count, longest=9, seed=0):
    """Random sentences of known words, and a tag for each."""
    rng = np.random.default_rng(seed)
    sentences = [
        list(rng.choice(WORDS, rng.integers(1, longest))) for _ in range(count)
    ]
    sentences = [[str(word) for word in words] for words in sentences]
    tags = [[int(WORDS.index(w) > 1) + (w in WORDS[4:6]) for w in s] for s in sentences]
    return sentences, tags
