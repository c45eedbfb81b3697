"""A system that the package does not have: recipes/own_objective.py."""

import csv
import dataclasses
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_corrupt import models
from keras_corrupt.presets.registry import find_class
from keras_corrupt.training import Checkpoints, pretrain
from tests.conftest import COMPILED
from tests.downstream.conftest import cats_and_dogs

pytestmark = pytest.mark.usefixtures("eager")

ROOT = Path(__file__).parents[2]
PATH = ROOT / "recipes" / "own_objective.py"
ENCODER = {
    "vocabulary_size": 120,
    "num_layers": 1,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_heads": 2,
    "max_length": 40,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "initializer_range": 0.1,
}


@pytest.fixture(scope="module")
def own():
    spec = importlib.util.spec_from_file_location("own_objective", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def config(own, prepared, tmp_path, monkeypatch):
    monkeypatch.setitem(own.MovedWords.presets, "tiny", {"encoder": ENCODER})
    return dataclasses.replace(
        own.config(),
        output=str(tmp_path / "run"),
        corpus=(),
        data=str(prepared.directory),
        sequence_length=32,
        batch_size=16,
        steps=4,
        warmup_steps=0,
        interval=2,
        validation_batches=1,
    )


def test_it_is_short():
    assert len(PATH.read_text().splitlines()) <= 150


def test_tokens_change_places_and_nothing_else_changes(own, prepared, tokenizer):
    sizes = ENCODER | {"vocabulary_size": tokenizer.vocabulary_size}
    model = own.MovedWords(
        sizes, mask_rate=0.4, masking="whole_word", tokenizer=tokenizer
    )
    inputs = tokenizer.pack(["the cat sat on the mat .", "a dog ran slowly"] * 4, 24)
    outputs = {name: np.array(x) for name, x in model(inputs).items()}
    ids = inputs["token_ids"]
    np.testing.assert_array_equal(np.sort(outputs["ids"]), np.sort(ids))
    np.testing.assert_array_equal(outputs["moved"], (outputs["ids"] != ids) * 1.0)
    assert outputs["moved"].any(axis=1).all()
    special = np.isin(ids, [0, 2, 3])
    np.testing.assert_array_equal(outputs["ids"][special], ids[special])


def test_the_loss_is_the_cross_entropy(own):
    model = own.MovedWords(ENCODER, mask_id=4, unmaskable_ids=(0, 2, 3))
    logits, moved = np.array([[2.0, -1.0]]), np.array([[1.0, 0.0]])
    outputs = {"logits": logits, "moved": moved, "weights": None}
    values, _ = model.objectives["moved"].loss(outputs)
    p = 1 / (1 + np.exp(-logits))
    expected = -np.log(np.where(moved == 1, p, 1 - p))
    np.testing.assert_allclose(np.array(values), expected, rtol=1e-6)


def test_it_is_continued_saved_and_loaded(config, tmp_path, monkeypatch, capsys):
    whole = pretrain(dataclasses.replace(config, output=str(tmp_path / "whole")))
    printed = capsys.readouterr().out
    assert "own>MovedWords tiny" in printed and "moved words, AUC" in printed
    assert f"{2 * 16 * whole.forward_flops(32):.2e} FLOPs" in printed
    save = Checkpoints.save

    def save_and_stop(self, model, step, phase):
        save(self, model, step, phase)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "save", save_and_stop)
        with pytest.raises(KeyboardInterrupt):
            pretrain(config)
    continued = pretrain(config)
    assert "Continuing at step 2." in capsys.readouterr().out
    loaded = models.load_preset(tmp_path / "run" / "preset")
    assert (type(loaded), loaded.distance) == (type(whole), 1)
    for a, b, c in zip(whole.weights, continued.weights, loaded.weights, strict=True):
        if "seed" not in a.path:
            np.testing.assert_array_equal(np.array(a), np.array(b))
            np.testing.assert_array_equal(np.array(b), np.array(c))


@pytest.mark.usefixtures("graphs")
def test_it_learns(config):
    """Words of a text in a fixed order: which have moved can be told."""
    rng = np.random.default_rng(0)
    model = find_class("own>MovedWords", models.Pretrainer)(
        ENCODER, mask_rate=0.2, mask_id=4, unmaskable_ids=(0, 2, 3)
    )
    start = rng.integers(5, 9, (512, 1))
    ids = np.concatenate([start * 0 + 2, start + np.arange(14), start * 0 + 3], axis=1)
    inputs = {"token_ids": ids.astype("int32")}
    inputs |= {"segment_ids": 0 * inputs["token_ids"]}
    inputs |= {"padding_mask": inputs["segment_ids"] + 1}
    model.compile(keras.optimizers.Adam(5e-3), jit_compile=COMPILED)
    model.fit(inputs, batch_size=32, epochs=15, verbose=0)
    # Chance is 0.5. Eight seeds, four on each backend, gave 0.995 to 1.
    assert model.evaluate(inputs, verbose=0, return_dict=True)["moved_auc"] > 0.8


def test_a_preset_is_fine_tuned_in_another_process(config, tmp_path):
    """The process knows the system by its flag alone."""
    model = pretrain(config)
    assert model.tokenizer is not None
    with open(tmp_path / "train.tsv", "w", newline="") as file:
        split = cats_and_dogs(24)
        rows = zip(split.examples, split.labels, strict=True)
        csv.writer(file, delimiter="\t").writerows([("text", "label"), *rows])

    def finetune(*flags):
        return subprocess.run(
            [sys.executable, str(ROOT / "recipes" / "finetune_text.py")]
            + ["--preset", "run/preset", "--train", "train.tsv", "--output", "out"]
            + [
                "--seeds",
                "1",
                "--retries",
                "0",
                "--max_length",
                "32",
                "--settings",
                "epochs",
                "1",
                *flags,
            ],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=300,
        )

    unknown = finetune()
    assert unknown.returncode == 1
    assert "'own>MovedWords' is none of the known classes" in unknown.stderr
    assert "module:Class" in unknown.stderr and "Traceback" not in unknown.stderr
    ran = finetune("--system", "own_objective:MovedWords")
    assert ran.returncode == 0, ran.stderr
    assert "learning_rate 0.001, epochs 1" in ran.stdout  # the system's own rate
    assert "| accuracy |" in ran.stdout  # the table lists the task
