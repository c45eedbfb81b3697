"""What XLA makes of training: TPUs run nothing else.

That compiled steps give the losses of uncompiled ones is shown by `test_backends.py`,
without chance. Here chance is on: masks, samples, dropout. On JAX every model's
`test_fit_learns_a_pattern` compiles the whole step, and JAX has static shapes only.
"""

import re

import keras
import numpy as np
import pytest

from keras_corrupt.corruption import (
    choose_positions,
    mask_tokens,
    sample_negatives,
    sample_tokens,
)
from keras_corrupt.devices.replicas import Dropout
from keras_corrupt.models import (
    CocoLM,
    Electra,
    Electric,
    Teams,
    TwoTower,
)
from keras_corrupt.training import AdamW, WarmupLinearDecay
from tests.conftest import SIZES, make_inputs

IDS = {name: SIZES[name] for name in ("mask_id", "unmaskable_ids")}
MODELS = {
    "electra_as_released": (Electra, {"keep_rate": 0.15, "tied_embeddings": "all"}),
    "electric": (Electric, {}),
    "teams": (Teams, {}),
    "two_tower": (TwoTower, {}),
    "coco_lm_all_tokens": (CocoLM, {"token_task": "all_token_lm"}),
}


def make_model(name):
    cls, options = MODELS[name]
    encoder = SIZES["discriminator"] | {"num_layers": 1}
    assert not {"dropout", "attention_dropout"} & encoder.keys()  # 0.1 by default
    rest = {TwoTower: (), Teams: (1,), CocoLM: ({},)}
    rest = rest.get(cls, (SIZES["generator"],))
    if cls is CocoLM:  # its softmax reads the encoder's output
        encoder |= {"embedding_size": encoder["hidden_size"]}
    return cls(encoder, *rest, **IDS, **options)


@pytest.mark.parametrize("name", MODELS)
def test_a_step_compiles_with_static_shapes(name):
    import tensorflow as tf

    model = make_model(name)
    optimizer = AdamW(WarmupLinearDecay(1e-3, 9, 2), global_clipnorm=1.0)
    model.compile(optimizer, jit_compile=True)
    optimizer.build(model.trainable_variables)
    step = tf.function(model.train_step, jit_compile=True)
    inputs = {key: tf.constant(array) for key, array in make_inputs().items()}
    # Every operation has an XLA form. One that has none, or that needs to know a
    # value to know a shape, is an error here.
    program = step.experimental_get_compiler_ir(inputs)(stage="hlo")
    assert "f32[6,20,16]" in program  # the discriminator's hidden vectors
    # No logits of all positions, also where all are learned from.
    assert "[6,20,50]" not in program and "[120,50]" not in program
    # XLA writes a length that depends on values, and is bounded, as `<=20`. TPUs pay
    # for these with padding, and JAX has none.
    assert re.findall(r"\[[^\]]*<=[^\]]*\]", program) == []


class Corruption(keras.Model):
    """All random parts of a training step."""

    def __init__(self, logits, num_negatives, rate):
        super().__init__()
        self.logits, self.num_negatives = logits, num_negatives
        self.dropout = Dropout(rate)
        self.seed_generator = keras.random.SeedGenerator(0)
        self.built = True

    def call(self, inputs):
        seed = self.seed_generator
        masking = choose_positions(inputs, 0.25, IDS["unmaskable_ids"], seed)
        masked_ids = mask_tokens(
            inputs["token_ids"], masking, IDS["mask_id"], 50, 0.2, 0.3, seed
        )
        shape = (*masking.positions.shape, len(self.logits))
        logits = keras.ops.broadcast_to(self.logits, shape)
        target_ids = keras.ops.zeros(shape[:2], "int32")
        return {
            "positions": masking.positions,
            "masked_ids": masked_ids,
            "samples": sample_tokens(logits, seed),
            "negatives": sample_negatives(logits, target_ids, self.num_negatives, seed),
            "dropout": self.dropout(keras.ops.ones((shape[0], 8, 16)), training=True),
        }


def assert_frequencies(counts, probabilities):
    """Checks counts by the chi-square statistic, five deviations allowed."""
    expected = np.sum(counts) * np.array(probabilities)
    freedom = len(expected) - 1
    chi2 = ((counts - expected) ** 2 / expected).sum()
    assert chi2 < freedom + 5 * np.sqrt(2 * freedom)


def test_chance_is_fair_when_compiled():
    """XLA has random number generators of its own."""
    row = np.array([1.0, -1.0, 0.3, 2.0, 0.0], "float32")
    softmax = np.exp(row) / np.exp(row).sum()
    rows, length = 8000, 12
    ids = np.tile(np.arange(5, 5 + length, dtype="int32"), (rows, 1))
    ids[:, 0], ids[:, -1] = 2, 3
    inputs = {"token_ids": ids, "padding_mask": np.ones_like(ids)}
    model = Corruption(row, num_negatives=1, rate=0.25)
    model.compile(jit_compile=True)
    first, second = (model.predict_on_batch(inputs) for _ in range(2))
    for name in first:
        assert (first[name] != second[name]).any(), name

    positions = np.sort(first["positions"], axis=1)
    assert positions.shape == (rows, 3) and (np.diff(positions, axis=1) > 0).all()
    counts = np.bincount(positions.ravel(), minlength=length)
    assert counts[0] == counts[-1] == 0
    assert_frequencies(counts[1:-1], np.full(length - 2, 1 / (length - 2)))

    before, after = (
        np.take_along_axis(array, positions, 1) for array in (ids, first["masked_ids"])
    )
    masked, kept = (after == IDS["mask_id"]).sum(), (after == before).sum()
    # A random token is each of the fifty once in a while, [MASK] and the old one too.
    shares = np.array([0.5 + 0.3 / 50, 0.2 + 0.3 / 50, 0.3 * 48 / 50])
    assert_frequencies([masked, kept, after.size - masked - kept], shares)

    assert_frequencies(np.bincount(first["samples"].ravel(), minlength=5), softmax)
    counts = np.bincount(first["negatives"].ravel(), minlength=5)
    assert counts[0] == 0  # the original
    assert_frequencies(counts[1:], softmax[1:] / softmax[1:].sum())

    dropped = (first["dropout"] == 0).sum()
    assert_frequencies([dropped, first["dropout"].size - dropped], [0.25, 0.75])
