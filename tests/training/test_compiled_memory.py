import re

import keras
import numpy as np
import pytest

from keras_corrupt.training.compiled_memory import CompiledMemory


def fitted(callbacks, jit_compile=True):
    """Returns the weights and the losses of a small model, trained for six steps."""
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16)])
    model.compile("adam", "mse", jit_compile=jit_compile)
    x = np.random.default_rng(0).normal(size=(12, 8)).astype("float32")
    kept = model.fit(x, x @ np.ones((8, 16), "float32"), 4, 2, 0, callbacks=callbacks)
    return model.get_weights(), kept.history["loss"]


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="only JAX's tells")
def test_the_compiler_is_asked_once_and_training_is_the_same():
    import jax

    compiled, told = [], []

    def count(event, duration, **kwargs):
        compiled.append(event.endswith("backend_compile_duration"))

    jax.monitoring.register_event_duration_secs_listener(count)
    fitted([])  # compiles what is no step, too
    before = sum(compiled)
    plain = fitted([])
    without = sum(compiled) - before
    asked = fitted([CompiledMemory(told.append)])
    assert sum(compiled) - before == 2 * without > 0
    (line,) = told
    assert re.search(r"the step, compiled in \d+ s, takes 0\.00 GB", line)
    np.testing.assert_array_equal(plain[1], asked[1])
    for one, other in zip(plain[0], asked[0], strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_is_not_compiled_for_jax_tells_nothing():
    told = []
    fitted([CompiledMemory(told.append)], keras.backend.backend() != "jax")
    assert not told
