"""Training goes on with Hugging Face's ELECTRA, and comes back to it."""

import shutil
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_corrupt.convert.conversion import convert
from keras_corrupt.models import Electra, load_preset
from keras_corrupt.training import AdamW, PretrainConfig, pretrain
from keras_corrupt.training.callbacks import read_metrics
from tests.convert.conftest import assert_same_weights

THEIRS = Path(__file__).parents[1] / "fixtures" / "hugging_face" / "electra"
WORDS = "the a cat dog sat ran on under mat rug quick slow".split()


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    """An ELECTRA that has learned something, as a directory of theirs."""
    keras.utils.set_random_seed(0)
    folder = tmp_path_factory.mktemp("source")
    tokenizer = load_preset(THEIRS).tokenizer
    encoder = {
        **{"vocabulary_size": tokenizer.vocabulary_size, "num_layers": 1},
        **{"hidden_size": 32, "intermediate_size": 64, "num_heads": 2},
        **{"max_length": 16, "dropout": 0.0, "attention_dropout": 0.0},
    }
    generator = {"hidden_size": 16, "intermediate_size": 32, "num_heads": 1}
    model = Electra(encoder, generator, tokenizer=tokenizer)
    model.compile(AdamW(1e-2))
    model.fit(tokenizer.pack(texts(256, 1), 16), epochs=6, batch_size=32, verbose=0)
    model.save_to_preset(folder / "preset")
    convert(folder / "preset", folder / "theirs", to="hugging_face")
    return folder / "theirs", model


def texts(number, seed):
    """Sentences in which a word tells the next one."""
    rng = np.random.default_rng(seed)
    starts = rng.integers(0, len(WORDS), number)
    return [
        " ".join(WORDS[(start + i) % len(WORDS)] for i in range(12)) for start in starts
    ]


def losses(model):
    """Of the same texts, masked in the same way."""
    model.compile(AdamW(1e-3))
    packed = model.tokenizer.pack(texts(64, 2), 16)
    model.seed_generator.state.assign([3, 4])
    return model.evaluate(packed, batch_size=64, verbose=0, return_dict=True)


def test_a_run_goes_on_where_theirs_has_ended(theirs, tmp_path):
    directory, source = theirs
    (tmp_path / "corpus.txt").write_text("\n\n".join(texts(400, 3)))
    config = PretrainConfig(
        model="Electra",
        preset="tiny",
        init_from=str(directory),
        corpus=(str(tmp_path / "corpus.txt"),),
        output=str(tmp_path / "run"),
        sequence_length=16,
        batch_size=16,
        steps=100,
        warmup_steps=10,
        learning_rate=1e-3,
        interval=20,
        validation_batches=2,
        validation_fraction=0.2,
    )
    before = losses(source)
    at_start = losses(Electra.from_preset(directory))
    for name in ("mlm_loss", "rtd_loss"):
        np.testing.assert_allclose(at_start[name], before[name], rtol=1e-5)
    new = losses(
        Electra(**source.get_config() | {"seed": 5}, tokenizer=source.tokenizer)
    )
    assert new["mlm_loss"] > before["mlm_loss"] + 0.5

    model = pretrain(config)
    rows = read_metrics(tmp_path / "run" / "metrics.csv")
    assert rows[-1]["step"] == 100
    for name in ("mlm_loss", "rtd_loss"):  # of the first 20 steps, and the next
        assert all(row[name] < before[name] + 0.2 for row in rows)
    assert losses(model)["mlm_loss"] < before["mlm_loss"] + 0.1
    convert(tmp_path / "run" / "preset", tmp_path / "back", to="hugging_face")
    back = Electra.from_preset(tmp_path / "back")
    assert_same_weights(model.discriminator, back.discriminator)
    assert_same_weights(model.generator, back.generator)
    assert "val_mlm_loss" in (tmp_path / "back" / "README.md").read_text()


def test_theirs_without_a_generator_needs_one(theirs, tmp_path):
    directory, _ = theirs
    shutil.copytree(directory, tmp_path / "alone")
    shutil.rmtree(tmp_path / "alone" / "generator")
    (tmp_path / "corpus.txt").write_text("\n\n".join(texts(400, 3)))
    config = PretrainConfig(
        model="Electra",
        preset="tiny",
        init_from=str(tmp_path / "alone"),
        corpus=(str(tmp_path / "corpus.txt"),),
        output=str(tmp_path / "run"),
        sequence_length=16,
        steps=2,
        warmup_steps=1,
        validation_fraction=0.2,
    )
    with pytest.raises(ValueError, match="has no generator.*--generator_steps"):
        pretrain(config)
