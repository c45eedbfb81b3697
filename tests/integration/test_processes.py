"""Two JAX processes train as one; when one is lost, the other says so and stops."""

import dataclasses
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_corrupt.models import CocoLM
from keras_corrupt.training import PretrainConfig, pretrain
from keras_corrupt.training.callbacks import read_metrics

ROOT = Path(__file__).parents[2]
ENCODER = {
    "vocabulary_size": 120,
    "num_layers": 1,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_heads": 2,
    "max_length": 32,
}
# COCO-LM contrasts each text with those of all processes.
PRESET = {"discriminator": ENCODER, "generator": {}}
RECIPE = PretrainConfig(
    model="CocoLM",
    preset="tiny",
    output="",
    sequence_length=32,
    batch_size=8,
    steps=30,
    learning_rate=1e-3,
    warmup_steps=3,
    epsilon=1e-3,
    interval=10,
    validation_batches=2,
)
COMMAND = """
from keras_corrupt.models import CocoLM
from keras_corrupt.training import main
from tests.integration.test_processes import PRESET, RECIPE

CocoLM.presets["tiny"] = PRESET
main(RECIPE, "A recipe.")
"""


class Processes:
    """The recipe in two processes."""

    def __init__(self, data, output, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "-c", COMMAND, "--data", data, "--output", output]
        command += ["--coordinator", f"127.0.0.1:{port}", "--processes", "2"]
        self.logs = [folder / f"{number}.log" for number in range(2)]
        self.processes = []
        for number, log in enumerate(self.logs):
            with open(log, "w") as file:
                self.processes.append(
                    subprocess.Popen(
                        [*command, "--process_id", str(number)],
                        env=environment,
                        stdout=file,
                        stderr=subprocess.STDOUT,
                    )
                )

    def wait(self):
        """Returns exit codes and logs."""
        for process in self.processes:
            process.wait(timeout=600)
        codes = [process.returncode for process in self.processes]
        return codes, [log.read_text() for log in self.logs]


def checkpoints(output):
    return sorted(path.name for path in output.glob("checkpoints/step-*.npz"))


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="JAX has processes")
def test_two_processes_train_as_one_until_one_is_lost(
    prepared, tmp_path, monkeypatch, capsys
):
    monkeypatch.setitem(CocoLM.presets, "tiny", PRESET)
    config = dataclasses.replace(RECIPE, data=str(prepared.directory))
    whole, broken = tmp_path / "whole", tmp_path / "broken"

    two = Processes(config.data, broken, tmp_path)
    deadline = time.monotonic() + 600
    while not checkpoints(broken):
        assert all(p.poll() is None for p in two.processes), two.wait()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    two.processes[1].send_signal(signal.SIGKILL)
    codes, logs = two.wait()
    assert codes[0] not in (0, -signal.SIGKILL), logs
    assert "Run the same command on every host again" in logs[0], logs
    last = int(re.search(r"\d+", checkpoints(broken)[-1])[0])
    assert 10 <= last < 30

    assert "2 CPUs in 2 processes, 4 sequences of a batch each" in logs[0]
    assert "model:" not in logs[1] and "step/s" not in logs[1]

    # Checkpoints know nothing of processes and devices.
    pretrain(dataclasses.replace(config, output=str(broken)))
    assert f"Continuing at step {last}." in capsys.readouterr().out

    pretrain(dataclasses.replace(config, output=str(whole)))
    rows, expected = (read_metrics(d / "metrics.csv") for d in (broken, whole))
    assert [row["step"] for row in rows] == [10, 20, 30]
    for row, other in zip(rows, expected, strict=True):
        for name in ("mlm_loss", "lm_loss", "scl_loss", "random_cosine"):
            assert row[name] == pytest.approx(other[name], rel=1e-4), name
    assert checkpoints(broken) == checkpoints(whole)
    name = checkpoints(whole)[-1]
    with np.load(broken / "checkpoints" / name) as ours:
        with np.load(whole / "checkpoints" / name) as theirs:
            assert ours.files == theirs.files
            for key in theirs.files:
                np.testing.assert_allclose(ours[key], theirs[key], 1e-3, 1e-5)
