"""What a run says that has too little memory: the backends' own errors, explained."""

import dataclasses
import re
from pathlib import Path
from types import SimpleNamespace

import keras
import pytest

from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.models import Electra
from keras_corrupt.training import Checkpoints, pretrain
from keras_corrupt.training.callbacks import Progress
from keras_corrupt.training.command_line import main
from keras_corrupt.training.memory import remat_bytes
from keras_corrupt.training.out_of_memory import (
    OutOfMemoryError,
    memory_remedies,
    of_fine_tuning,
)
from tests.training.conftest import ENCODER, command_line


def exhaust_memory():
    """Asks the backend for four petabytes."""
    keras.ops.ones((10**7, 10**8))


def test_the_backends_error_is_explained():
    with pytest.raises(OutOfMemoryError, match="^too large$") as caught:
        with memory_remedies(str, "too large"):
            exhaust_memory()
    assert re.search("(?i)out of memory|OOM", str(caught.value.__cause__))


def test_a_full_disk_is_another_error():
    import tensorflow as tf

    full = tf.errors.ResourceExhaustedError(None, None, "No space left on device")
    with pytest.raises(tf.errors.ResourceExhaustedError, match="No space left"):
        with memory_remedies(str, "too large"):
            raise full


def test_a_run_keeps_its_checkpoint_and_names_remedies(
    config, presets, tmp_path, monkeypatch
):
    config = dataclasses.replace(config, model="MaskedLM", steps=4, interval=2)
    done = Progress.on_train_batch_end

    def third_step_exhausts(self, batch, logs=None):
        done(self, batch, logs)
        if self.bar.n == 3:
            exhaust_memory()

    with monkeypatch.context() as patch:
        patch.setattr(Progress, "on_train_batch_end", third_step_exhausts)
        patch.setattr("sys.argv", ["recipe.py", *command_line(config)])
        with pytest.raises(SystemExit) as caught:
            main(config, "A recipe.")
    first, *remedies, last = caught.value.code.splitlines()
    assert first.startswith("Error: Memory does not suffice for 16 x 32 tokens")
    flags = [remedy.split("about")[0].split() for remedy in remedies]
    assert flags == [  # to make the only layer again would save nothing
        ["--accumulate", "2"],
        ["--accumulate", "4"],
        ["--accumulate", "8"],
        ["--encoder.remat", "attention"],
        ["--sequence_length", "16"],
    ]
    assert "the checkpoint of step 2" in last and "another --accumulate" in last
    assert Checkpoints(Path(config.output) / "checkpoints").steps() == [2]
    # The first remedy, in the same directory.
    model = pretrain(dataclasses.replace(config, accumulate=2))
    assert int(model.optimizer.iterations) == 4


def test_estimates_of_fine_tuning():
    encoder = TransformerEncoder(**ENCODER)
    model = SimpleNamespace(encoder=encoder, number_bytes=4, count_params=lambda: 10**8)
    text = of_fine_tuning(model, 10_000, 40)
    found = [float(number) for number in re.findall(r"about ([\d.]+) GB", text)]
    sizes = (10_000, 40), (5_000, 40), (2_500, 40), (10_000, 20)
    state = 16 * 10**8
    expected = [(state + encoder.activation_bytes(*size, 4)) / 1e9 for size in sizes]
    assert found == pytest.approx(expected, abs=0.005)
    assert re.search("--settings batch_size 5000 .*--max_length 20 ", text, re.DOTALL)


def test_what_is_computed_again_is_not_counted():
    """By hand, of one layer: 2 sequences of 20 tokens, in float32."""

    def counts(**options):
        for remat in ("none", "attention", "layer"):
            encoder = TransformerEncoder(**ENCODER | {"remat": remat, **options})
            yield encoder.activation_bytes(2, 20, 4)

    none, attention, layer = counts()
    weights = 2 * 2 * 20**2
    assert none - attention == 4 * weights
    # Its input is kept beside the whole layer that is made again.
    assert layer - none == 4 * 40 * 16
    deeper = list(counts(num_layers=2))
    assert deeper[0] - none == 4 * (40 * (8 * 16 + 32) + weights)
    assert deeper[1] - attention == 4 * 40 * (8 * 16 + 32)
    assert deeper[2] - layer == 4 * 40 * 16


@pytest.mark.parametrize("remat", ["attention", "layer"])
def test_another_remat_is_counted_without_making_its_weights(remat):
    model = Electra(ENCODER, {}, mask_id=4, unmaskable_ids=(0, 1, 2), seed=3)
    # The generator keeps its own.
    generator = model.generator.encoder.architecture
    other = Electra(
        ENCODER | {"remat": remat}, generator, mask_id=4, unmaskable_ids=(0, 1, 2)
    )
    size = 20_000, 20
    assert remat_bytes(model, *size, remat) == other.activation_bytes(*size)
    assert remat_bytes(model, *size, "none") == model.activation_bytes(*size)
