"""When training uses the kernels, and what happens where they cannot be."""

import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
from keras import ops

from keras_corrupt import cpu_kernels
from keras_corrupt.cpu_kernels import all_replacements
from keras_corrupt.devices.guests import invites_guests
from keras_corrupt.heads import softmax


class Choice(keras.layers.Layer):
    """Calls a function that a kernel replaces, and notes from which module that is."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def call(self, x):
        logits = softmax.output_logits(x, ops.zeros(x.shape[-1]))
        self.seen.append("kernels" if hasattr(logits, "products_and_bias") else "plain")
        return x + 0 * ops.cast(softmax.likeliest(logits), "float32")[:, None]


@invites_guests
class Model(keras.Model):
    def __init__(self):
        super().__init__()
        self.choice = Choice()
        self.dense = keras.layers.Dense(1)

    def call(self, x):
        return self.dense(self.choice(x))


X, Y = np.ones((4, 3), "float32"), np.ones((4, 1), "float32")


def model_of(**settings):
    """Compiles a model that has run once."""
    model = Model()
    model.compile("sgd", "mse", **{"jit_compile": False} | settings)
    model(X)
    model.choice.seen.clear()
    return model


HOW = {"graph": {}, "xla": {"jit_compile": True}, "eager": {"run_eagerly": True}}


STEPS = {
    "fit": lambda model: model.fit(X, Y, verbose=0),
    "evaluate": lambda model: model.evaluate(X, Y, verbose=0),
    "predict": lambda model: model.predict(X, verbose=0),
    "predict_on_batch": lambda model: model.predict_on_batch(X),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("how", HOW)
def test_only_steps_in_a_graph_without_xla_use_the_kernels(how, step):
    model = model_of(**HOW[how])
    STEPS[step](model)
    assert set(model.choice.seen) == {"kernels" if how == "graph" else "plain"}
    model.choice.seen.clear()
    model(X)
    assert set(model.choice.seen) == {"plain"}


def test_a_model_that_is_not_compiled_predicts_with_them():
    model = Model()
    model.predict_on_batch(X)
    assert "kernels" in model.choice.seen


@pytest.mark.parametrize("inner", [False, True], ids=["step", "function around it"])
def test_a_step_within_a_function_that_xla_compiles_trains(inner):
    import tensorflow as tf

    model = model_of()
    model.optimizer.build(model.trainable_variables)
    step = model.train_step
    if inner:
        step = tf.function(step)
    compiled = tf.function(lambda batch: step(batch), jit_compile=True)
    before = np.array(model.dense.kernel)
    batch = tf.constant(X), tf.constant(Y)
    losses = [float(compiled(batch)["loss"]) for _ in range(3)]
    assert set(model.choice.seen) == {"plain"}
    # One step of gradient descent on the dense layer, by hand, for inputs of 1.
    residual = before.sum() - 1
    once = before - 0.01 * 2 * residual
    other = model_of()
    other.dense.set_weights([before, np.zeros(1)])
    other.fit(X, Y, verbose=0)
    np.testing.assert_allclose(other.dense.kernel, once, rtol=1e-5)
    assert losses[0] == pytest.approx(residual**2, rel=1e-5)
    assert losses[0] > losses[1] > losses[2]


@pytest.fixture
def first_use(monkeypatch):
    """Makes the next use of the kernels the first."""
    for name in [name for name in sys.modules if name.startswith(KERNELS)]:
        monkeypatch.delitem(sys.modules, name)
        monkeypatch.delattr(cpu_kernels, name.removeprefix(KERNELS))
    all_replacements.cache_clear()
    yield
    all_replacements.cache_clear()


KERNELS = "keras_corrupt.cpu_kernels."


def without_numba(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "numba", None)


def with_a_compiler_that_fails(monkeypatch, tmp_path):
    import numba

    def fail(*args, **options):
        raise RuntimeError("no such instruction\nand more lines")

    monkeypatch.setattr(numba, "cfunc", lambda *args, **options: fail)


def on_windows(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "platform", "win32")


def without_tensorflows_library(monkeypatch, tmp_path):
    import tensorflow as tf

    monkeypatch.setattr(tf.sysconfig, "get_lib", lambda: str(tmp_path))


def without_the_c_interface(monkeypatch, tmp_path):
    without_tensorflows_library(monkeypatch, tmp_path)
    another = Path(np._core._multiarray_umath.__file__)
    (tmp_path / "libtensorflow_framework.so.2").symlink_to(another)


@pytest.mark.parametrize(
    "missing, reason",
    [
        (without_numba, "numba"),
        (with_a_compiler_that_fails, "no such instruction"),
        (on_windows, "Windows has no POSIX threads"),
        (without_tensorflows_library, "has no libtensorflow_framework"),
        (without_the_c_interface, "has no function TF_NewStatus"),
    ],
)
def test_what_is_missing_is_told_once_and_plain_trains(
    missing, reason, first_use, monkeypatch, tmp_path, capfd
):
    missing(monkeypatch, tmp_path)
    for _ in range(2):
        model = model_of()
        model.fit(X, Y, verbose=0)
        assert set(model.choice.seen) == {"plain"}
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("keras_corrupt: no CPU kernels") and reason in line


def test_a_variable_turns_them_off_silently(first_use, monkeypatch, capfd):
    monkeypatch.setenv("KERAS_CORRUPT_KERNELS", "plain")
    model = model_of()
    model.fit(X, Y, verbose=0)
    assert set(model.choice.seen) == {"plain"}
    assert capfd.readouterr().err == ""


def test_another_value_of_the_variable_is_an_error(first_use, monkeypatch):
    monkeypatch.setenv("KERAS_CORRUPT_KERNELS", "off")
    with pytest.raises(ValueError, match="KERAS_CORRUPT_KERNELS='off'.*'plain'"):
        all_replacements()


IMPORTS = """
import sys

from keras_corrupt import downstream, models, training

for name in ("numba", "llvmlite", "keras_corrupt.cpu_kernels.table"):
    assert name not in sys.modules, name
"""


def test_imports_do_not_load_them():
    subprocess.run(
        [sys.executable, "-c", IMPORTS],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        check=True,
    )
