import math

import jax.numpy as jnp
import pytest

from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.heads import ReplacedTokenHead, VocabularyHead
from keras_corrupt.heads.multi_word_selection import MultiWordSelectionHead
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
    probabilities = softmax(dense(x, x.shape[-1], VOCABULARY))
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


def made(**options):
    return TransformerEncoder(**ENCODER | options)


@pytest.mark.parametrize(
    "ours, program, shapes",
    [
        (
            lambda: VocabularyHead(made()).flops(5),
            vocabulary_head_with_transform,
            [(5, HIDDEN), (5, VOCABULARY)],
        ),
        (
            lambda: VocabularyHead(made(embedding_size=HIDDEN), transform=False).flops(
                5
            ),
            vocabulary_head,
            [(5, HIDDEN), (5, VOCABULARY)],
        ),
        (
            lambda: ReplacedTokenHead(made(), transform=False).flops(LENGTH),
            replaced_token_classifier,
            [(LENGTH, HIDDEN)],
        ),
        (
            lambda: ReplacedTokenHead(made()).flops(LENGTH),
            replaced_token_head,
            [(LENGTH, HIDDEN)],
        ),
        (
            lambda: MultiWordSelectionHead(made()).flops(5, 6),
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
    assert ours() == pytest.approx(counted(program, *shapes), rel=0.005)


def test_a_head_of_two_towers_reads_both():
    encoder = made()
    extra = VocabularyHead(encoder, hidden_size=2 * HIDDEN).flops(5)
    assert extra - VocabularyHead(encoder).flops(5) == 5 * 2 * HIDDEN * SIZE


def test_logits_take_memory_with_their_gradient():
    head = VocabularyHead(made(), chunk_size=4)
    assert head.activation_bytes(5, 2) == 2 * 5 * VOCABULARY * 2
    # All positions are gone through in chunks, in float32; these are 4, 4 and 1.
    assert head.chunk_bytes(3, 9) == 2 * 3 * 4 * VOCABULARY * 4
    assert head.chunk_bytes(3, 2) == 2 * 3 * 2 * VOCABULARY * 4


def own_parameters(head, encoder):
    shared = {id(v) for v in encoder.variables}
    return sum(math.prod(v.shape) for v in head.variables if id(v) not in shared)


def test_parameters_are_those_of_the_arithmetic():
    encoder = made()
    transform = HIDDEN * SIZE + SIZE + 2 * SIZE
    head = VocabularyHead(encoder)
    assert own_parameters(head, encoder) == transform + VOCABULARY
    wide = VocabularyHead(encoder, hidden_size=2 * HIDDEN)
    assert own_parameters(wide, encoder) == transform + HIDDEN * SIZE + VOCABULARY
    assert own_parameters(MultiWordSelectionHead(encoder), encoder) == transform
    detection = HIDDEN * HIDDEN + HIDDEN + HIDDEN + 1
    assert own_parameters(ReplacedTokenHead(encoder), encoder) == detection
    flat = made(embedding_size=HIDDEN)
    head = VocabularyHead(flat, transform=False)
    assert own_parameters(head, flat) == VOCABULARY
