import numpy as np
import pytest

from keras_corrupt.encoders import TransformerEncoder
from tests.encoders.conftest import (
    ENCODER,
    LENGTH,
    counted,
    dense,
    encoder_parameters,
    gelu,
    layer_norm,
    softmax,
)

BIASED = ENCODER | {"relative_positions": {"num_buckets": 8, "max_distance": 16}}


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
            lambda encoder: (
                encoder.embeddings.flops(LENGTH)
                + LENGTH * encoder.embedding_projection.flops()
            ),
            embed,
            [(LENGTH, ENCODER["vocabulary_size"]), PAIRS, (LENGTH, 2)],
        ),
        (
            lambda encoder: encoder.layers_[0].flops(LENGTH),
            transformer_layer,
            [HIDDEN, PAIRS],
        ),
        (
            lambda encoder: encoder.layers_[0].flops(LENGTH, has_bias=True),
            transformer_layer,
            [HIDDEN, PAIRS, (ENCODER["num_heads"], *PAIRS)],
        ),
    ],
    ids=["embeddings", "transformer layer", "transformer layer with a bias"],
)
def test_a_compiler_counts_the_same(ours, program, shapes):
    encoder = TransformerEncoder(**ENCODER)
    assert ours(encoder) == pytest.approx(counted(program, *shapes), rel=0.005)


def test_an_encoder_is_the_sum_of_its_parts():
    encoder = TransformerEncoder(**ENCODER)
    parts = LENGTH * encoder.embedding_projection.flops()
    parts += encoder.embeddings.flops(LENGTH) + 2 * encoder.layers_[0].flops(LENGTH)
    assert encoder.flops(LENGTH) == parts
    # One embedding size for all: no projection.
    flat = TransformerEncoder(**ENCODER | {"embedding_size": None})
    layers = 2 * flat.layers_[0].flops(LENGTH)
    assert flat.flops(LENGTH) == flat.embeddings.flops(LENGTH) + layers


def test_a_bias_costs_an_addition_for_each_logit():
    plain, biased = TransformerEncoder(**ENCODER), TransformerEncoder(**BIASED)
    for training in (False, True):
        extra = biased.flops(LENGTH, training) - plain.flops(LENGTH, training)
        assert extra == 2 * 4 * LENGTH**2


def test_dropout_costs_four_operations_for_each_dropped_number():
    per_layer = 2 * LENGTH * 32 + 4 * LENGTH * LENGTH  # Outputs and attention.
    dropped = LENGTH * 16 + 2 * per_layer
    encoder = TransformerEncoder(**ENCODER)
    extra = encoder.flops(LENGTH, training=True) - encoder.flops(LENGTH)
    assert extra == 4 * dropped


def test_activation_bytes_by_hand():
    encoder = TransformerEncoder(**ENCODER)
    layer = 3 * LENGTH * (8 * 32 + 80) + 3 * 4 * LENGTH**2
    assert encoder.layers_[0].activation_bytes(3, LENGTH, 2) == 2 * layer
    half = 3 * 3 * LENGTH * max(80, 4 * LENGTH)
    embeddings = 3 * LENGTH * 16 * 6
    whole = encoder.activation_bytes(3, LENGTH, 2)
    assert whole == 2 * (2 * layer + half) + 4 * embeddings
    biased = TransformerEncoder(**BIASED).activation_bytes(3, LENGTH, 2)
    assert biased - whole == 2 * 4 * 4 * LENGTH**2


@pytest.mark.parametrize("config", [ENCODER, BIASED], ids=["plain", "biased"])
def test_parameters_are_those_of_the_arithmetic(config):
    encoder = TransformerEncoder(**config)
    assert encoder.count_params() == encoder_parameters(config)


@pytest.mark.parametrize("length", [0, 41])
def test_length_out_of_range(length):
    with pytest.raises(ValueError, match=f"`length`.*40.*length={length}"):
        TransformerEncoder(**ENCODER).flops(length)
