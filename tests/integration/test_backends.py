"""TensorFlow, with and without XLA, and JAX train alike; bfloat16 is like float32."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).with_name("train_five_steps.py")
#: Electra's generator is a masked language model.
SYSTEMS = ("electra", "teams", "two_tower", "coco_lm")
#: Compiling takes long; `test_xla.py` does it for all.
COMPILED = ("coco_lm",)
#: Name -> backend, whether XLA compiles whole steps, and what to train. JAX without
#: XLA runs op by op, which takes minutes.
PROCESSES = {
    "tensorflow": ("tensorflow", 0, (*SYSTEMS, "electra_bfloat16")),
    "tensorflow_xla": ("tensorflow", 1, COMPILED),
    "jax": ("jax", 1, (*SYSTEMS, "electra_bfloat16")),
}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Process -> run -> (losses of each step, final weights)."""
    folder = tmp_path_factory.mktemp("backends")
    processes = {}
    for name, (backend, xla, runs) in PROCESSES.items():
        environment = os.environ | {
            "KERAS_BACKEND": backend,
            "PYTHONPATH": str(SCRIPT.parents[2]),
        }
        processes[name] = subprocess.Popen(
            [sys.executable, str(SCRIPT), str(folder / name), str(xla), *runs],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    found = {}
    try:
        for name, process in processes.items():
            printed, _ = process.communicate(timeout=600)
            assert process.returncode == 0, printed
            found[name] = {
                run: (
                    json.loads((folder / name / f"{run}.json").read_text()),
                    dict(np.load(folder / name / f"{run}.npz")),
                )
                for run in PROCESSES[name][2]
            }
    finally:
        for process in processes.values():
            process.kill()
    return found


@pytest.mark.parametrize(
    "run, other_process",
    [
        *((run, "jax") for run in SYSTEMS),
        *((run, "tensorflow_xla") for run in COMPILED),
    ],
)
def test_all_train_alike(results, run, other_process):
    ours, weights = results["tensorflow"][run]
    theirs, expected = results[other_process][run]
    assert len(ours) == 5
    for step, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        assert one.keys() == other.keys() > {"loss"}
        assert {"mlm_loss", "cloze_loss"} & one.keys()
        for name in one:
            if name.endswith("loss"):
                assert one[name] == pytest.approx(other[name], rel=1e-5), (step, name)
    assert ours[4]["loss"] != pytest.approx(ours[0]["loss"], rel=1e-2)  # it moves
    assert weights.keys() == expected.keys()
    moved = 0.0
    for name, array in weights.items():
        if name.startswith("final"):
            np.testing.assert_allclose(array, expected[name], rtol=1e-4, atol=2e-6)
            start = weights[name.replace("final", "initial")]
            moved = max(moved, np.abs(array - start).max())
        else:
            np.testing.assert_array_equal(array, expected[name])
    assert moved > 1e-3  # far above the tolerance


@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
def test_bfloat16_loss_is_near_that_of_float32(results, backend):
    full, _ = results[backend]["electra"]
    half, weights = results[backend]["electra_bfloat16"]
    assert {array.dtype for array in weights.values()} == {np.dtype("float32")}
    for step, (one, other) in enumerate(zip(half, full, strict=True)):
        for name in ("mlm_loss", "rtd_loss"):
            assert one[name] == pytest.approx(other[name], rel=0.03), (step, name)
    assert half[0]["mlm_loss"] != full[0]["mlm_loss"]  # it did compute in bfloat16
