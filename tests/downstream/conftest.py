"""An encoder of a small size, and a task that it can learn."""

import dataclasses

import keras
import numpy as np
import pytest

from keras_corrupt.downstream import FinetuneConfig
from keras_corrupt.models import Electra
from keras_corrupt.tasks.task import Split
from keras_corrupt.tasks.text_task import TextTask
from keras_corrupt.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer
from tests.conftest import SIZES

#: An encoder for the vocabulary of the fixture `tokenizer`.
ENCODER = {
    "vocabulary_size": 60,
    "num_layers": 1,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_heads": 2,
    "max_length": 24,
    "initializer_range": 0.2,
}


@pytest.fixture(autouse=True, scope="module")
def few_steps(eager):
    """Tests of this folder make few."""


@pytest.fixture(scope="session")
def preset(tmp_path_factory):
    """A preset of `Electra` that knows some words."""
    keras.utils.set_random_seed(0)
    words = "the a cat dog sat ran on under mat rug".split()
    model = Electra(
        {**SIZES["discriminator"], "initializer_range": 0.2},
        SIZES["generator"],
        tokenizer=WordPieceTokenizer([*SPECIAL_TOKENS, *words]),
    )
    directory = tmp_path_factory.mktemp("electra") / "preset"
    model.save_to_preset(directory)
    return str(directory)


def scrambled(model):
    """The model with every weight changed, so that none is like a new one's."""
    for v in model.trainable_variables:
        v.assign(v + keras.random.normal(v.shape, stddev=0.3))
    return model


def cats_and_dogs(count, seed=0):
    """Sentences with one animal each, which is their label."""
    rng = np.random.default_rng(seed)
    fillers = ["the", "a", "sat", "ran", "on", "under", "mat", "rug"]
    examples, labels = [], []
    for _ in range(count):
        label = ["cat", "dog"][rng.integers(2)]
        words = list(rng.choice(fillers, rng.integers(1, 8)))
        words.insert(rng.integers(len(words) + 1), label)
        examples.append(" ".join(words))
        labels.append(label)
    return Split(examples, labels, [str(i) for i in range(count)])


def animals(dev=40):
    splits = {"train": cats_and_dogs(192), "dev": cats_and_dogs(dev, seed=1)}
    splits["test"] = dataclasses.replace(cats_and_dogs(30, seed=2), labels=None)
    return TextTask("animals", splits, ["cat", "dog"], metrics=("accuracy", "macro_f1"))


@pytest.fixture
def config(preset, tmp_path):
    settings = {"learning_rate": 5e-3, "epochs": 3, "batch_size": 8, "dropout": 0.0}
    return FinetuneConfig(
        preset=preset, output=str(tmp_path / "out"), seeds=2, settings=settings
    )
