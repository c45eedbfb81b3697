import numpy as np
import pytest

from keras_corrupt.encoders import TransformerEncoder, cost
from keras_corrupt.models.electra.presets import PRESETS
from tests.encoders.conftest import (
    ENCODER,
    LENGTH,
    counted,
    dense,
    gelu,
    layer_norm,
    softmax,
)

RELATIVE = {"relative_positions": {"num_buckets": 8, "max_distance": 16}}


def embed(tokens, positions, segments):
    size, hidden = ENCODER["embedding_size"], ENCODER["hidden_size"]
    x = tokens @ np.ones((tokens.shape[-1], size))
    x = x + positions @ np.ones((LENGTH, size)) + segments @ np.ones((2, size))
    return dense(layer_norm(x), size, hidden)


def transformer_layer(x, mask, bias=None):
    hidden, inner = ENCODER["hidden_size"], ENCODER["intermediate_size"]
    heads = ENCODER["num_heads"]
    query, key, value = (
        dense(x, hidden, hidden).reshape(LENGTH, heads, -1).swapaxes(0, 1)
        for _ in range(3)
    )
    logits = query @ key.swapaxes(1, 2) * 0.25
    if bias is not None:
        logits = logits + bias
    weights = softmax(logits * mask)
    context = (weights @ value).swapaxes(0, 1).reshape(LENGTH, hidden)
    x = layer_norm(x + dense(context, hidden, hidden))
    return layer_norm(x + dense(gelu(dense(x, hidden, inner)), inner, hidden))


HIDDEN = (LENGTH, ENCODER["hidden_size"])
PAIRS = (LENGTH, LENGTH)


@pytest.mark.parametrize(
    "ours, program, shapes",
    [
        (
            cost.embedding_flops(ENCODER, LENGTH),
            embed,
            [(LENGTH, ENCODER["vocabulary_size"]), PAIRS, (LENGTH, 2)],
        ),
        (
            cost.transformer_layer_flops(ENCODER, LENGTH),
            transformer_layer,
            [HIDDEN, PAIRS],
        ),
        (
            cost.transformer_layer_flops(ENCODER | RELATIVE, LENGTH),
            transformer_layer,
            [HIDDEN, PAIRS, (ENCODER["num_heads"], *PAIRS)],
        ),
    ],
    ids=["embeddings", "transformer layer", "transformer layer with a bias"],
)
def test_a_compiler_counts_the_same(ours, program, shapes):
    assert ours == pytest.approx(counted(program, *shapes), rel=0.005)


def test_a_bias_costs_an_addition_for_each_logit():
    for training in (False, True):
        plain = cost.encoder_flops(ENCODER, LENGTH, training)
        biased = cost.encoder_flops(ENCODER | RELATIVE, LENGTH, training)
        assert biased - plain == 2 * 4 * LENGTH**2


def test_dropout_costs_four_operations_for_each_dropped_number():
    per_layer = 2 * LENGTH * 32 + 4 * LENGTH * LENGTH  # Outputs and attention.
    dropped = LENGTH * 16 + 2 * per_layer
    extra = cost.encoder_flops(ENCODER, LENGTH, training=True)
    extra -= cost.encoder_flops(ENCODER, LENGTH)
    assert extra == 4 * dropped


def test_activation_bytes_by_hand():
    layer = 3 * LENGTH * (8 * 32 + 80) + 3 * 4 * LENGTH**2
    assert cost.transformer_layer_activation_bytes(ENCODER, 3, LENGTH, 2) == 2 * layer
    half = 3 * 3 * LENGTH * max(80, 4 * LENGTH)
    embeddings = 3 * LENGTH * 16 * 6
    whole = cost.encoder_activation_bytes(ENCODER, 3, LENGTH, 2)
    assert whole == 2 * (2 * layer + half) + 4 * embeddings
    biased = cost.encoder_activation_bytes(ENCODER | RELATIVE, 3, LENGTH, 2)
    assert biased - whole == 2 * 4 * 4 * LENGTH**2


def test_an_encoder_counts_itself():
    encoder = TransformerEncoder(**ENCODER, **RELATIVE)
    assert encoder.count_params() == cost.encoder_parameters(ENCODER | RELATIVE)
    assert encoder.flops(LENGTH) == cost.encoder_flops(ENCODER | RELATIVE, LENGTH)
    training = cost.encoder_flops(ENCODER | RELATIVE, LENGTH, training=True)
    assert encoder.flops(LENGTH, training=True) == training
    needed = cost.encoder_activation_bytes(ENCODER | RELATIVE, 3, LENGTH, 2)
    assert encoder.activation_bytes(3, LENGTH, 2) == needed


@pytest.mark.parametrize("length", [0, 41])
def test_length_out_of_range(length):
    with pytest.raises(ValueError, match=f"`length`.*40.*length={length}"):
        cost.encoder_flops(ENCODER, length)


def test_a_generator_must_be_completed():
    with pytest.raises(ValueError, match="vocabulary_size.*complete_generator"):
        cost.encoder_flops(PRESETS["small"]["generator"], 128)
