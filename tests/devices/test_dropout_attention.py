"""Attention with dropout, interpreted, attends as the plain form with its mask."""

import contextlib

import keras
import numpy as np
import pytest
from keras import ops

from keras_corrupt.devices import dropout_attention, flash_attention
from tests.devices.conftest import check_that_places_are_independent

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "jax", reason="the kernel is JAX's"
)

#: All keys of the second text are hidden, as in texts that only fill a batch.
PADDING = (np.arange(128) < np.array([[100], [0]]))[:, None, None]
NEAR = np.abs(np.arange(128)[:, None] - np.arange(128)) < 20
SHAPE = (2, 128, 3, 16)
SEED = np.array([7, 9], "uint32")


def kept(rate, seed=SEED, shape=SHAPE):
    """Returns which weights stay: boolean `[batch, heads, length, length]`."""
    from benchmarks import dropout_attention as benchmark

    return np.array(benchmark.kept(rate, seed, shape))


@pytest.mark.parametrize(
    ("mask", "distributed"),
    [(PADDING, False), (NEAR[None, None], False), (NEAR & PADDING, True)],
)
def test_it_attends_as_the_plain_form_with_the_same_mask(mask, distributed):
    import jax

    from benchmarks.dropout_attention import plain

    rng = np.random.default_rng(0)
    query, key, value, weights = rng.normal(size=(4, *SHAPE)).astype("float32")
    mask, seed = ops.convert_to_tensor(mask), ops.convert_to_tensor(SEED)
    stays = kept(0.3)

    def ours(query, key, value):
        found = dropout_attention.attend(
            query, key, value, mask, 0.3, seed, interpret=True
        )
        return ops.sum(found * weights), found

    def theirs(query, key, value):
        found = plain(query, key, value, mask, stays, 0.3)
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
        np.testing.assert_allclose(a, b, atol=2e-6)


def test_a_devices_texts_drop_what_they_would_in_the_whole_batch():
    from keras_corrupt.devices.attention_kernels import attention

    rng = np.random.default_rng(0)
    inputs = [*rng.normal(size=(3, *SHAPE)).astype("float32"), PADDING.astype("int8")]

    def attended(texts):
        own, first = [x[texts:] for x in inputs], np.array([texts], "int32")
        return np.array(attention(*own, first, SEED, 0.3, True))

    np.testing.assert_array_equal(attended(1), attended(0)[1:])


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_the_rate_is_dropped_and_nothing_depends_on_its_neighbours(rate):
    # texts, heads, queries, keys
    check_that_places_are_independent(kept(rate, shape=(4, 256, 4, 1)), rate)


def test_each_seed_drops_others():
    seeds = [SEED, SEED + np.array([1, 0], "uint32"), SEED + np.array([0, 1], "uint32")]
    found = [kept(0.5, seed).ravel() for seed in seeds]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert (found[one] == found[other]).mean() == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(
    ("shape", "dtype", "chosen"),
    [
        ((4, 128, 2, 64), "bfloat16", ["", "kernel"]),
        ((4, 128, 2, 32), "bfloat16", ["kernel"]),  # no GPU has run it
        ((4, 128, 2, 64), "float32", []),
        ((4, 96, 2, 64), "bfloat16", []),
        ((4, 128, 2, 48), "bfloat16", []),
    ],
)
def test_what_it_has_a_kernel_for(monkeypatch, shape, dtype, chosen):
    query = ops.zeros(shape, dtype)
    assert not dropout_attention.applies(query)  # without a GPU
    monkeypatch.setattr(flash_attention, "is_available", lambda: True)
    for choice in ("", "kernel", "plain"):
        monkeypatch.setenv(dropout_attention.SWITCH, choice)
        assert dropout_attention.applies(query) == (choice in chosen)


def test_an_unknown_value_of_the_variable_is_an_error(monkeypatch):
    monkeypatch.setenv(dropout_attention.SWITCH, "on")
    with pytest.raises(ValueError, match="DROPOUT_ATTENTION must be kernel, plain or"):
        dropout_attention.applies(ops.zeros((4, 128, 2, 64)))
