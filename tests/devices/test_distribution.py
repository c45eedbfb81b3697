"""N devices give what one device gives on the same global batch."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_corrupt.devices import replicas
from keras_corrupt.devices.batches import Batches
from keras_corrupt.devices.distribution import ONE_DEVICE, Distribution, selected
from keras_corrupt.models import Electra
from keras_corrupt.training import PretrainConfig
from keras_corrupt.training.compiling import compiles_with_xla
from tests.training.conftest import with_devices

SCRIPT = Path(__file__).with_name("train_on_devices.py")
BACKEND = keras.backend.backend()
CONFIG = PretrainConfig(model="Electra", preset="tiny", output="")
SYSTEMS = ("masked_lm", "electra", "teams", "coco_lm")
#: TensorFlow takes long to trace and compile a step for several devices. One is
#: compiled, the others run eagerly.
RUNS = {
    "tensorflow": [
        *(f"electra/{w}/1/eager" for w in ("plain", "all")),
        "electra/all/2/compiled",
        *(f"teams/all/{n}/eager" for n in (1, 2)),
        *(f"coco_lm/plain/{n}/eager" for n in (1, 4)),
        *(f"masked_lm/masks/{n}/eager" for n in (1, 2)),
        *(f"masked_lm/muon/{n}/eager" for n in (1, 2)),
        "draws//2/eager",
        "continued//1,1/eager",
        "continued//2,1/eager",
    ],
    "jax": [
        *(f"electra/all/{n}/compiled" for n in (1, 4)),
        "electra/all/4/many",
        "electra/plain/1/compiled",
        *(f"masked_lm/masks/{n}/compiled" for n in (1, 2)),
        *(f"masked_lm/muon/{n}/compiled" for n in (1, 2)),
        "draws//2/compiled",
    ],
}[BACKEND]


@pytest.fixture(scope="module")
def results(prepared, tmp_path_factory):
    """Run -> name -> array, of `train_on_devices.py`."""
    path = tmp_path_factory.mktemp("devices") / "arrays.npz"
    environment = os.environ | {
        "KERAS_BACKEND": BACKEND,
        "PYTHONPATH": str(SCRIPT.parents[2]),
    }
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), str(path), str(prepared.directory), *RUNS],
        env=environment,
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    found = {run: {} for run in RUNS}
    with np.load(path) as archive:
        for key in archive.files:
            run, name = key.split("::")
            found[run][name] = archive[key]
    return found


@pytest.mark.parametrize(
    "run",
    [run for run in RUNS if run.startswith(SYSTEMS) and run.split("/")[2] != "1"],
)
def test_several_devices_train_as_one(results, run):
    """Also where they hold unequal shares of what is learned from, or none."""
    system, setting, _, mode = run.split("/")
    alone = results.get(f"{system}/{setting}/1/{mode.replace('many', 'compiled')}")
    alone = alone or results[f"{system}/{setting}/1/eager"]
    if mode == "many":  # One row has the metrics of all steps.
        alone = {n: a for n, a in alone.items() if not n.startswith("metrics.")}
        results[run] = {name: results[run][name] for name in alone}
    assert results[run].keys() == alone.keys()
    moved = []
    for name, array in results[run].items():
        # The area counts examples above thresholds; rounding can move one across.
        tolerance = 1e-2 if name.endswith("_auc") else 1e-4
        np.testing.assert_allclose(array, alone[name], tolerance, 2e-6, err_msg=name)
        if name == "metrics.loss":
            assert array.shape == (3,)
            moved.append(np.ptp(array))
    assert mode == "many" or moved[0] > 0.01  # far above the tolerance


def test_clipping_and_averaging_change_what_is_trained(results):
    """Otherwise the comparison above would say nothing of them."""
    mode = "compiled" if BACKEND == "jax" else "eager"
    one, other = (results[f"electra/{s}/1/{mode}"] for s in ("plain", "all"))
    assert np.abs(one["weights.0"] - other["weights.0"]).max() > 1e-3


def test_devices_draw_different_numbers(results):
    (drawn,) = (arrays for run, arrays in results.items() if "draws" in run)
    assert len(drawn) == 5
    for name, (one, other) in drawn.items():
        assert not np.array_equal(one, other), name


def test_a_run_continues_on_other_devices(results):
    """Nothing is drawn, so that it must end where one device ends."""
    alone, others = (results[f"continued//{n},1/eager"] for n in (1, 2))
    assert others.keys() == alone.keys()
    assert np.ptp(alone["val_mlm_loss"]) > 0.01  # far above the tolerance
    for name, array in others.items():
        np.testing.assert_allclose(array, alone[name], 1e-4, 2e-6, err_msg=name)


def layer_seeds(layer):
    """The random number generators that a layer has itself."""
    generator = keras.random.SeedGenerator
    return [value for value in vars(layer).values() if isinstance(value, generator)]


def test_models_draw_by_replica():
    rates = {"dropout": 0.1, "attention_dropout": 0.1}
    model = Electra.from_preset("tiny", discriminator=rates)
    draws = [layer for layer in model._flatten_layers() if layer_seeds(layer)]
    assert len(draws) > 8
    for layer in draws:
        for seeds in layer_seeds(layer):
            assert isinstance(seeds, replicas.SeedGenerator), layer.path


def test_one_device_draws_as_keras():
    ours, theirs = replicas.SeedGenerator(7), keras.random.SeedGenerator(7)
    for _ in range(3):
        np.testing.assert_array_equal(
            keras.ops.convert_to_numpy(ours.next()),
            keras.ops.convert_to_numpy(theirs.next()),
        )


# === Which devices ===


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"strategy": "mirrored" if BACKEND == "jax" else "jax"}, "KERAS_BACKEND"),
        ({"devices": 99}, r"--devices 99: there are \d+ \(.*cpu:0"),
        ({"devices": 0}, r"--devices 0: there are"),
        ({"devices": 2, "strategy": "none"}, "--strategy none uses one"),
        ({"process_id": 0, "processes": 2}, "need --coordinator HOST:PORT"),
    ],
)
def test_what_cannot_work(changes, message):
    with pytest.raises(ValueError, match=f"(?i){message}"):
        with_devices(**{"count": "auto", **changes})


def test_several_tensorflow_processes(monkeypatch):
    with pytest.raises(ValueError, match="--coordinator.*Use JAX for several hosts"):
        with_devices("auto", coordinator="localhost:1234")
    workers = {"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(workers))
    with_devices("auto")  # one worker is one process
    workers["cluster"]["worker"].append("b:1")
    monkeypatch.setenv("TF_CONFIG", json.dumps(workers))
    with pytest.raises(ValueError, match="TF_CONFIG asks for more.*Use JAX"):
        with_devices("auto")


def test_no_tpu(monkeypatch):
    def connect():
        raise tf.errors.NotFoundError(None, None, "no TPU")

    resolver = tf.distribute.cluster_resolver.TPUClusterResolver
    monkeypatch.setattr(resolver, "connect", connect)
    with pytest.raises(ValueError, match="finds no TPU .no TPU.*KERAS_BACKEND=jax"):
        with_devices("auto", strategy="tpu")


def test_one_device_needs_no_strategy():
    chosen = with_devices("auto")
    assert (chosen.strategy, chosen.handle, len(chosen.devices)) == ("none", None, 1)
    assert chosen.describe(16) == "1 CPU; no strategy, 1 of 1"


@pytest.mark.parametrize(
    "changes, count, reason",
    [
        ({}, 8, "MirroredStrategy, 8 of 8"),
        ({"devices": 2}, 2, "MirroredStrategy, 2 of 8, as asked"),
        ({"strategy": "none", "devices": 1}, 1, "no strategy, 1 of 8, as asked"),
        (
            {"batch_size": 24, "accumulate": 2},
            6,
            "MirroredStrategy, 6 of 8, no more share 12 sequences evenly",
        ),
    ],
)
def test_all_devices_that_can_share_a_batch_are_used(changes, count, reason):
    config = dataclasses.replace(CONFIG, **changes)
    names = [f"GPU:{i}" for i in range(8)]
    chosen = selected(config, names, "mirrored", "MirroredStrategy")
    strategy = "none" if count == 1 else "mirrored"
    assert chosen == (strategy, tuple(names[:count]), reason)


def test_the_line_of_the_banner():
    gpus = tuple(f"gpu:{i}" for i in range(4))
    chosen = Distribution("jax", gpus, "DataParallel, 4 of 4", processes=2)
    assert chosen.describe(64) == (
        "4 GPUs in 2 processes, 16 sequences of a batch each; DataParallel, 4 of 4"
    )


def test_steps_over_several_tensorflow_devices_are_not_compiled_whole():
    assert not compiles_with_xla("mirrored") and not compiles_with_xla("tpu")


def test_a_batch_that_cannot_be_split():
    config = dataclasses.replace(CONFIG, batch_size=24, accumulate=2)
    three, five = (
        Distribution("mirrored", tuple(f"GPU:{i}" for i in range(n)), "")
        for n in (3, 5)
    )
    three.check_batch(config)
    with pytest.raises(ValueError, match="among 5 devices. Choose a multiple of 10"):
        five.check_batch(config)


# === Shares of a batch ===


def test_shares_of_the_processes_are_the_batch():
    array = np.arange(1, 20, dtype="int32").reshape(19, 1)
    rows = [{"token_ids": array[start : start + 8]} for start in (0, 8, 16)]
    batches = Batches(rows.__getitem__, 3, varying=(0,))
    devices = tuple(f"gpu:{i}" for i in range(4))
    shares = []
    for process in range(2):
        part = Distribution("jax", devices, "", processes=2, process=process)
        found = part.part_of(batches, 8)
        assert len(found) == 3 and not found.varying
        shares.append([batch["token_ids"] for batch in found])
        assert {part.shape for part in shares[-1]} == {(4, 1)}
    whole = np.concatenate(
        [np.concatenate(parts) for parts in zip(*shares, strict=True)]
    )
    np.testing.assert_array_equal(whole[:19], array)
    np.testing.assert_array_equal(whole[19:], np.zeros((5, 1)))
    assert ONE_DEVICE.part_of(batches, 8) is batches


# === Agreement ===


def test_an_error_is_the_caller_s_own():
    def fail():
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        ONE_DEVICE.in_all_processes(fail)
    assert ONE_DEVICE.in_all_processes(lambda: 7, first_only=True) == 7
    second = dataclasses.replace(ONE_DEVICE, process=1)
    assert second.in_all_processes(fail, first_only=True) is None


class Gathered(Distribution):
    """Two processes; what the other one sent is known."""

    def _gather(self, array):
        return np.stack([array, self.handle(array)])


def test_an_error_elsewhere_reaches_this_process():
    def other(array):
        text = b"dataset.json is missing"
        return np.frombuffer(text.ljust(len(array), b"\0"), np.uint8)

    two = Gathered("jax", ("gpu:0",), "", other, processes=2)
    with pytest.raises(ValueError, match="^process 1: dataset.json is missing$"):
        two.in_all_processes(lambda: 7)
    quiet = dataclasses.replace(two, handle=np.zeros_like)
    assert quiet.in_all_processes(lambda: 7) == 7
    assert quiet.any(True) and not quiet.any(False)


def test_an_error_without_words_reaches_the_others():
    def fail():
        raise MemoryError

    sent = []

    def gather(array):
        sent.append(bytes(array).rstrip(b"\0"))
        return array

    with pytest.raises(MemoryError):
        Gathered("jax", ("gpu:0",), "", gather, processes=2).in_all_processes(fail)
    assert sent == [b"MemoryError"]
