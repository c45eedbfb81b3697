"""Splash attention, interpreted, attends as Keras's own form does."""

import contextlib

import keras
import numpy as np
import pytest
from keras import ops

from keras_corrupt.devices import splash_attention

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "jax", reason="the kernel is JAX's"
)


@pytest.mark.parametrize("distributed", [False, True])
def test_it_attends_as_keras_does(distributed):
    import jax

    arrays = np.random.default_rng(0).normal(size=(4, 2, 128, 3, 8)).astype("float32")
    query, key, value, weights = arrays
    seen = np.arange(128) < np.array([[100], [37]])
    mask = ops.convert_to_tensor(seen[:, None, None])

    def ours(query, key, value):
        found = splash_attention.attend(query, key, value, mask, interpret=True)
        return ops.sum(found * weights), found

    def theirs(query, key, value):
        found = ops.dot_product_attention(
            query, key, value, None, mask, flash_attention=False
        )
        return ops.sum(found * weights), found

    scope = contextlib.nullcontext()
    if distributed:
        devices = keras.distribution.list_devices()[:1]
        scope = keras.distribution.DataParallel(devices=devices).scope()
    results = []
    for function in (ours, theirs):
        with scope if function is ours else contextlib.nullcontext():
            step = jax.jit(jax.value_and_grad(function, (0, 1, 2), has_aux=True))
            (_, attended), gradients = step(query, key, value)
        results.append([attended, *gradients])
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


@pytest.mark.parametrize(
    ("length", "mask_shape", "applies"),
    [
        (256, (4, 1, 1, 256), True),
        (192, (4, 1, 1, 192), False),
        (256, (4, 1, 256, 256), False),
    ],
)
def test_what_it_has_a_kernel_for(monkeypatch, length, mask_shape, applies):
    query, mask = np.zeros((4, length, 2, 8)), np.zeros(mask_shape, bool)
    assert not splash_attention.applies(query, mask)  # without a TPU
    monkeypatch.setattr(splash_attention, "is_available", lambda: True)
    assert splash_attention.applies(query, mask) == applies
