"""A step that goes through its batch in parts comes to what the whole batch gives."""

import keras
import numpy as np
import pytest

from keras_corrupt.corruption import Masking, corrupters, masker
from keras_corrupt.objectives.masked_tokens import MaskedTokens
from keras_corrupt.training import SGD
from tests.conftest import COMPILED, make_inputs
from tests.integration.train_five_steps import make_model

ROWS = 8


def the_same(logits, *args, **kwargs):
    """Samples one token everywhere: the likeliest may be another by rounding."""
    return keras.ops.full(keras.ops.shape(logits)[:-1], 7, "int32")


@pytest.fixture
def batch():
    """Rows that differ in length and in masked positions; the last two have none."""
    rng = np.random.default_rng(0)
    positions = [rng.choice(np.arange(1, 9), 4, replace=False) for _ in range(ROWS)]
    counts = np.array([4, 4, 3, 2, 2, 1, 0, 0])[:, None]
    return make_inputs(ROWS) | {
        "masked_positions": np.array(positions, "int32"),
        "masked_weights": (np.arange(4) < counts).astype("float32"),
        "sample_weight": rng.uniform(0.5, 2.0, ROWS).astype("float32"),
    }


def updated(model, batch, micro_batches):
    """Returns what a step of gradient descent reports, and each weight's change."""
    rng = np.random.default_rng(1)
    for variable in model.trainable_variables:
        start = 1.0 if variable.name == "gamma" else 0.0
        variable.assign(start + rng.normal(0.0, 0.1, variable.shape))
    before = [np.array(v) for v in model.trainable_variables]
    # What does not come from texts counts once, however many parts there are.
    model.trainable_variables[0].regularizer = keras.regularizers.L2(0.1)
    model.micro_batches = micro_batches
    model.compile(SGD(1.0), jit_compile=COMPILED)
    logs = model.train_on_batch(batch, return_dict=True)
    changes = [
        np.array(v) - x for v, x in zip(model.trainable_variables, before, strict=True)
    ]
    return {name: float(value) for name, value in logs.items()}, changes


def error(changes, expected):
    """Returns the largest difference, relative to the largest change."""
    pairs = [*zip(changes, expected, strict=True)]
    largest = max(np.abs(x).max() for x in expected)
    return max(np.abs(x - y).max() for x, y in pairs) / largest


@pytest.mark.parametrize("system", ["masked_lm", "electra"])
def test_parts_give_the_update_of_the_whole_batch(system, batch, monkeypatch):
    monkeypatch.setattr(corrupters, "sample_tokens", the_same)
    logs, expected = updated(make_model(system), batch, 1)
    found, changes = updated(make_model(system), batch, 4)
    assert error(changes, expected) < 1e-5
    assert found == pytest.approx(logs, rel=1e-4)
    # A mean of the parts' means is another one.
    parts = []
    for start in range(0, ROWS, 2):
        part = {name: array[start : start + 2] for name, array in batch.items()}
        parts.append(updated(make_model(system), part, 1)[1])
    means = [np.mean(changes, axis=0) for changes in zip(*parts, strict=True)]
    assert error(means, expected) > 1e-3


def three_masks(inputs, mask_rate, unmaskable_ids, seed, num_masks):
    """Three positions for each mask, none for two, that depend on nothing."""
    masks = 1 + keras.ops.arange(3 * num_masks, dtype="int32")
    masks = keras.ops.reshape(masks, (num_masks, 3))
    positions = keras.ops.tile(masks, (keras.ops.shape(inputs["token_ids"])[0], 1))
    return Masking(positions, keras.ops.ones_like(positions, "float32"))


@pytest.mark.parametrize("parts", [1, 4])
def test_several_masks_give_the_mean_update_of_each(parts, batch, monkeypatch):
    monkeypatch.setattr(masker, "choose_positions", three_masks)
    alone = []
    for mask in range(2):
        positions = np.tile(np.arange(3, dtype="int32") + 1 + 3 * mask, (ROWS, 1))
        weights = np.ones(positions.shape, "float32")
        masked = {"masked_positions": positions, "masked_weights": weights}
        alone.append(updated(make_model("masked_lm"), batch | masked, 1)[1])
    model = make_model("masked_lm")
    model.masker.options["num_masks"] = 2
    texts = {n: x for n, x in batch.items() if not n.startswith("masked_")}
    _, changes = updated(model, texts, parts)
    mean = [np.mean(both, axis=0) for both in zip(*alone, strict=True)]
    assert error(changes, mean) < 1e-5
    assert error(alone[0], mean) > 1e-2


def test_texts_are_contrasted_within_their_part(batch, monkeypatch):
    monkeypatch.setattr(corrupters, "sample_tokens", the_same)
    logs, expected = updated(make_model("coco_lm"), batch, 1)
    found, changes = updated(make_model("coco_lm"), batch, 4)
    for term in ("mlm", "lm", "rtd"):
        assert found[f"{term}_loss"] == pytest.approx(logs[f"{term}_loss"], rel=1e-4)
    # Texts are nearly alike at first: log of the others, 15 of the batch, 3 of a part.
    assert logs["scl_loss"] == pytest.approx(np.log(15), abs=0.01)
    assert found["scl_loss"] == pytest.approx(np.log(3), abs=0.01)
    assert error(changes, expected) > 1e-4


def test_weights_are_found_with_the_draws_that_are_learned_from(monkeypatch):
    """Weights that tell what was drawn: ones have the mean 1 only if none differs."""

    def terms(self, outputs):
        weights = keras.ops.cast(outputs["mlm"].masking.positions, "float32") ** 2
        return keras.ops.ones_like(weights), weights

    monkeypatch.setattr(MaskedTokens, "loss", terms)
    model = make_model("masked_lm", dropout=0.1)
    model.micro_batches = 4
    model.compile(SGD(0.0), jit_compile=COMPILED)
    for _ in range(3):
        loss = model.train_on_batch(make_inputs(ROWS), return_dict=True)["loss"]
        assert float(loss) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="asks XLA")
def test_the_pass_that_finds_weights_multiplies_nothing():
    import jax

    def products(micro_batches):
        model = make_model("masked_lm", dropout=0.1)
        model.micro_batches = micro_batches
        model.compile(SGD(0.1), jit_compile=False)
        model.optimizer.build(model.trainable_variables)
        batch = make_inputs(2 * micro_batches)
        model._symbolic_build(data_batch=(batch,))
        state = model._get_jax_state(
            trainable_variables=True,
            non_trainable_variables=True,
            optimizer_variables=True,
            metrics_variables=True,
        )
        step = jax.jit(model.train_step).lower(state, (batch,)).compile()
        return step.as_text().count(" dot(")

    assert products(2) == products(1) > 10


def test_a_batch_that_cannot_be_divided(batch):
    model = make_model("masked_lm")
    model.micro_batches = 3
    model.compile(SGD(0.1), jit_compile=False)
    with pytest.raises(ValueError, match="batch of 8 sequences.*micro_batches=3"):
        model.train_on_batch(batch)
