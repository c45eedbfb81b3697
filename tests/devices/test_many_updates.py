"""Several updates in one program."""

import keras
import numpy as np
import pytest

from keras_corrupt.devices import many_updates
from keras_corrupt.models import MaskedLM
from keras_corrupt.training import AdamW, Muon, WarmupLinearDecay

RNG = np.random.default_rng(0)
#: Three batches of one shape, one of another, and what is left of an epoch.
LENGTHS = 20, 20, 20, 20, 12, 20, 20
BATCHES = [RNG.integers(5, 50, (2, length)).astype("int32") for length in LENGTHS]


def fitted(sizes, at_once, optimizer_class):
    """Returns a model's weights, losses by update, and metrics."""
    keras.utils.set_random_seed(0)
    encoder = sizes.pop("discriminator")
    sizes.pop("generator")
    model = MaskedLM(encoder, **sizes)  # draws nothing that depends on what it computes
    # A large epsilon: Adam would magnify the rounding errors of tiny gradients.
    schedule = WarmupLinearDecay(0.2, 20, 2)
    optimizer = optimizer_class(schedule, epsilon=1e-3, global_clipnorm=1.0)
    model.compile(optimizer, jit_compile=True, steps_per_execution=at_once)
    losses = {}
    callback = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: losses.update({batch: logs["loss"]})
    )
    batches = ((batch,) for batch in BATCHES)
    history = model.fit(
        batches,
        steps_per_epoch=len(BATCHES),
        shuffle=False,
        verbose=0,
        callbacks=[callback],
    )
    return model.get_weights(), losses, history.history


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="a program of JAX")
@pytest.mark.parametrize("optimizer", [AdamW, Muon])
def test_they_are_the_same(sizes, optimizer):
    weights, losses, metrics = fitted(dict(sizes), 3, optimizer)
    one_weights, one_losses, one_metrics = fitted(dict(sizes), 1, optimizer)
    for one, other in zip(one_weights, weights, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=2e-6)
    expected = {2: one_losses[2], 5: one_losses[5], 8: one_losses[6]}
    assert losses == pytest.approx(expected, rel=1e-4)
    assert metrics.keys() == one_metrics.keys()
    for name, values in metrics.items():
        assert values == pytest.approx(one_metrics[name], rel=1e-4), name
    assert abs(one_losses[0] - one_losses[6]) > 0.01  # far above the tolerance


@pytest.mark.parametrize("ema", [False, True])
def test_what_an_update_makes_flat_is_flat_throughout(sizes, ema):
    """With and without decay, weights, averages and an average of the weights."""
    encoder = dict(sizes)["discriminator"]
    ids = {name: sizes[name] for name in ("mask_id", "unmaskable_ids")}
    model = MaskedLM(encoder, **ids)
    model.compile(AdamW(0.1, use_ema=ema))
    model.optimizer.build(model.trainable_variables)
    layout = many_updates.layout_of(model)
    together = [x for x in layout.positions.values() if len(x) > 1]
    count = len(model.trainable_variables)
    rows = 4 if ema else 3
    assert len(together) == 2 * rows
    assert sum(map(len, together)) == rows * count


def test_cpus_make_one_and_accelerators_of_jax_many(monkeypatch):
    assert many_updates.most_at_once() == 1
    monkeypatch.setattr(many_updates, "accelerators", lambda: ["gpu:0"])
    on_jax = keras.backend.backend() == "jax"
    assert many_updates.most_at_once() == (many_updates.MOST if on_jax else 1)
