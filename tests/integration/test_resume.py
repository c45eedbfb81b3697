"""A run that was killed ends where an undisturbed one ends.

`tests/training/test_pretraining.py` interrupts one by Ctrl-C.
"""

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

ROOT = Path(__file__).parents[2]
# A small network with dropout. Accumulation and averaging have states
# of their own.
RECIPE = """
from keras_corrupt.models import Electra
from keras_corrupt.training import PretrainConfig, main

Electra.presets["tiny"] = {
    "discriminator": {
        "vocabulary_size": 120,
        "num_layers": 1,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_heads": 2,
        "max_length": 32,
        "dropout": 0.1,
        "attention_dropout": 0.1,
    },
    "generator": {"hidden_size": 16, "intermediate_size": 32, "num_heads": 1},
}
config = PretrainConfig(
    model="Electra",
    preset="tiny",
    output="",
    sequence_length=32,
    batch_size=8,
    accumulate=2,
    ema=0.9,
    steps=60,
    learning_rate=1e-3,
    warmup_steps=6,
    interval=5,
    validation_batches=1,
)
main(config, "A recipe.")
"""


class Recipe:
    """A recipe in a process of its own."""

    def __init__(self, data, output, log):
        self.output, self.log = Path(output), log
        environment = os.environ | {
            "KERAS_BACKEND": "tensorflow",
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",
        }
        command = [sys.executable, "-c", RECIPE, "--data", data, "--output", output]
        with open(log, "w") as file:
            self.process = subprocess.Popen(
                list(map(str, command)),
                env=environment,
                stdout=file,
                stderr=subprocess.STDOUT,
            )

    def wait(self):
        self.process.wait(timeout=300)
        return self.process.returncode, self.log.read_text()

    def kill_after_checkpoint(self):
        """Kills it at a random moment after its first checkpoint appears."""
        deadline = time.monotonic() + 300
        while not checkpoints(self.output):
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.01)
        time.sleep(random.random() * 0.3)
        self.process.kill()
        return self.wait()


def checkpoints(output):
    return {path.name for path in output.glob("checkpoints/step-*.npz")}


def arrays(output):
    """All arrays of the preset and of the last checkpoint."""
    found = {}
    for path in sorted(output.glob("preset/*/model.safetensors")):
        for name, array in load_file(path).items():
            found[f"{path.parent.name}/{name}"] = array
    last = output / "checkpoints" / max(checkpoints(output))
    with np.load(last) as archive:
        found |= {f"{last.name}/{name}": archive[name] for name in archive.files}
    return found


def test_a_killed_run_ends_like_an_undisturbed_one(prepared, tmp_path):
    data = prepared.directory
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    undisturbed = Recipe(data, whole, tmp_path / "whole.log")

    killed = Recipe(data, broken, tmp_path / "killed.log")
    code, log = killed.kill_after_checkpoint()
    assert code == -signal.SIGKILL, log
    assert not (broken / "preset").exists()

    code, log = Recipe(data, broken, tmp_path / "last.log").wait()
    assert code == 0, log
    assert re.search(r"Continuing at step [1-5]?[05]\.", log), log
    code, log = undisturbed.wait()
    assert code == 0, log
    assert "Continuing" not in log

    ours, expected = arrays(broken), arrays(whole)
    assert ours.keys() == expected.keys()
    assert "step-000000060.npz/description" in ours
    assert {"generator", "discriminator"} <= {name.split("/")[0] for name in ours}
    for name, array in expected.items():
        np.testing.assert_array_equal(ours[name], array, err_msg=name)
    # The averages are what is saved; they are not the last weights.
    weight = "discriminator/encoder/layers_0/intermediate/kernel"
    average = f"optimizer/model_variables_moving_average/{weight}"
    average = expected[f"step-000000060.npz/{average}"]
    np.testing.assert_array_equal(expected[weight], average)
    assert not np.array_equal(expected[f"step-000000060.npz/model/{weight}"], average)
    steps = re.findall(r"^(\d+),", (broken / "metrics.csv").read_text(), re.MULTILINE)
    assert steps == [str(step) for step in range(5, 61, 5)]
