"""A graph with the CPU kernels, saved and loaded by another process."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

LOAD = """
import sys
import tensorflow as tf

if sys.argv[2] == "kernels":
    from keras_corrupt.cpu_kernels import all_replacements
    assert all_replacements()
try:
    tf.saved_model.load(sys.argv[1]).gelu(tf.ones((2, 3)), tf.zeros(3))
except (tf.errors.OpError, RuntimeError) as error:
    print(error)
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    import tensorflow as tf

    from keras_corrupt.cpu_kernels.gelu import bias_gelu

    module, path = tf.Module(), str(tmp_path_factory.mktemp("saved") / "module")
    spec = [tf.TensorSpec((2, 3)), tf.TensorSpec((3,))]
    module.gelu = tf.function(bias_gelu, input_signature=spec)
    y = module.gelu(tf.ones((2, 3)), tf.zeros(3))
    np.testing.assert_allclose(y, 0.8413447, rtol=1e-6)
    tf.saved_model.save(module, path)
    np.testing.assert_array_equal(  # this process has what the graph needs
        tf.saved_model.load(path).gelu(tf.ones((2, 3)), tf.zeros(3)), y
    )
    return path


@pytest.mark.parametrize(
    "who, message",
    [
        ("kernels", "Another process made this graph.*KERAS_CORRUPT_KERNELS=plain"),
        ("tensorflow", "Op type not registered 'KerasCorruptKernel'"),
    ],
)
def test_another_process_says_why_it_cannot_run_the_graph(saved, who, message):
    run = subprocess.run(
        [sys.executable, "-c", LOAD, saved, who],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert re.search(message, run.stdout), run.stdout
