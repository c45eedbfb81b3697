import math

import jax.numpy as jnp
import pytest
from keras_corrupt.heads.multi_word_selection import MultiWordSelectionHead

from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.heads import ReplacedTokenHead, VocabularyHead, cost
from keras_corrupt.models.teams import cost as teams
from tests.encoders.conftest import (
    ENCODER,
    LENGTH,
    counted,
    dense,
    gelu,
    layer_norm,
    softmax,
)

HIDDEN, SIZE = ENCODER["hidden_size"], ENCODER["embedding_size"]
VOCABULARY = ENCODER["vocabulary_size"]


def vocabulary_head(x, target):
    probabilities = softmax(dense(x, SIZE, VOCABULARY))
    return (probabilities * target).sum(-1)


def vocabulary_head_with_transform(x, target):
    return vocabulary_head(layer_norm(gelu(dense(x, HIDDEN, SIZE))), target)


def selection_head(x, candidates):
    x = layer_norm(gelu(dense(x, HIDDEN, SIZE)))
    embeddings = candidates @ jnp.ones((VOCABULARY, SIZE))
    return softmax((embeddings * x[:, None]).sum(-1))


def replaced_token_classifier(x):
    return 1 / (1 + jnp.exp(-dense(x, HIDDEN, 1)))


def replaced_token_head(x):
    return replaced_token_classifier(gelu(dense(x, HIDDEN, HIDDEN)))


@pytest.mark.parametrize(
    "ours, program, shapes",
    [
        (
            cost.vocabulary_head_flops(ENCODER, 5),
            vocabulary_head_with_transform,
            [(5, HIDDEN), (5, VOCABULARY)],
        ),
        (
            cost.vocabulary_head_flops(ENCODER, 5, transform=False),
            vocabulary_head,
            [(5, SIZE), (5, VOCABULARY)],
        ),
        (
            cost.replaced_token_head_flops(ENCODER, LENGTH, transform=False),
            replaced_token_classifier,
            [(LENGTH, HIDDEN)],
        ),
        (
            cost.replaced_token_head_flops(ENCODER, LENGTH),
            replaced_token_head,
            [(LENGTH, HIDDEN)],
        ),
        (
            teams.selection_head_flops(ENCODER, 5, 6),
            selection_head,
            [(5, HIDDEN), (5, 6, VOCABULARY)],
        ),
    ],
    ids=[
        "vocabulary",
        "vocabulary without transform",
        "replaced token without transform",
        "replaced token",
        "selection",
    ],
)
def test_a_compiler_counts_the_same(ours, program, shapes):
    assert ours == pytest.approx(counted(program, *shapes), rel=0.005)


def own_parameters(head, encoder):
    shared = {id(v) for v in encoder.variables}
    return sum(math.prod(v.shape) for v in head.variables if id(v) not in shared)


def test_heads_count_themselves():
    encoder = TransformerEncoder(**ENCODER)
    flat = ENCODER | {"embedding_size": HIDDEN}
    flat_encoder = TransformerEncoder(**flat)

    head = VocabularyHead(encoder)
    assert own_parameters(head, encoder) == cost.vocabulary_head_parameters(ENCODER)
    assert head.flops(5) == cost.vocabulary_head_flops(ENCODER, 5)
    assert head.activation_bytes(5, 2) == 2 * 5 * VOCABULARY * 2

    head = VocabularyHead(flat_encoder, transform=False)
    expected = cost.vocabulary_head_parameters(flat, transform=False)
    assert own_parameters(head, flat_encoder) == expected == VOCABULARY
    assert head.flops(5) == cost.vocabulary_head_flops(flat, 5, transform=False)

    head = VocabularyHead(encoder, hidden_size=2 * HIDDEN)
    towers = ENCODER | {"hidden_size": 2 * HIDDEN}
    assert own_parameters(head, encoder) == cost.vocabulary_head_parameters(towers)
    assert head.flops(5) == cost.vocabulary_head_flops(towers, 5)

    head = ReplacedTokenHead(encoder)
    assert own_parameters(head, encoder) == cost.replaced_token_head_parameters(ENCODER)
    assert head.flops(5) == cost.replaced_token_head_flops(ENCODER, 5)

    head = MultiWordSelectionHead(encoder)
    assert own_parameters(head, encoder) == cost.transform_parameters(ENCODER)
    assert head.flops(5, 6) == teams.selection_head_flops(ENCODER, 5, 6)
