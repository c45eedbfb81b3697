"""Two JAX processes train as one; when one is lost, the other says so and stops."""

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

from keras_corrupt.training.callbacks import read_metrics

ROOT = Path(__file__).parents[2]
# COCO-LM contrasts each text with those of all processes.
RECIPE = """
from keras_corrupt.models import CocoLM
from keras_corrupt.training import PretrainConfig, main

CocoLM.presets["tiny"] = {
    "discriminator": {
        "vocabulary_size": 120,
        "num_layers": 1,
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_heads": 2,
        "max_length": 32,
    },
    "generator": {},
}
config = PretrainConfig(
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
main(config, "A recipe.")
"""


class Processes:
    """A recipe in some processes of its own."""

    def __init__(self, count, data, output, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        environment = os.environ | {
            "KERAS_BACKEND": "jax",
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",
            # Most of a short run on JAX is compilation.
            "JAX_COMPILATION_CACHE_DIR": str(folder / "compiled"),
        }
        command = [sys.executable, "-c", RECIPE, "--data", data, "--output", output]
        if count > 1:
            command += ["--coordinator", f"127.0.0.1:{port}", "--processes", count]
        self.logs, self.processes = [], []
        for number in range(count):
            ours = [*command, "--process_id", number] if count > 1 else command
            self.logs.append(folder / f"{output.name}.{port}.{number}.log")
            with open(self.logs[-1], "w") as file:
                self.processes.append(
                    subprocess.Popen(
                        list(map(str, ours)),
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
def test_two_processes_train_as_one_until_one_is_lost(prepared, tmp_path):
    data = prepared.directory
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    alone = Processes(1, data, whole, tmp_path)
    codes, logs = alone.wait()
    assert codes == [0], logs

    two = Processes(2, data, broken, tmp_path)
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
    codes, logs = Processes(1, data, broken, tmp_path).wait()
    assert codes == [0], logs
    assert f"Continuing at step {last}." in logs[0]

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
