"""What a two-tower model costs: two encoders, a head at every position.

`encoder` are a tower's constructor arguments throughout.
"""

from keras_corrupt.encoders.cost import (
    embedding_parameters,
    encoder_activation_bytes,
    encoder_flops,
    encoder_parameters,
    encoder_sizes,
)
from keras_corrupt.heads.cost import (
    vocabulary_head_activation_bytes,
    vocabulary_head_flops,
    vocabulary_head_parameters,
)
from keras_corrupt.heads.vocabulary import CHUNK_SIZE
from keras_corrupt.models.networks import EMBEDDING_PARTS


def forward_flops(encoder, length):
    """Counts one training sequence, forward, dropout included.

    The towers share embedding tables, but each pays for its own look-ups.

    Args:
        encoder: Dict. Constructor arguments of `TransformerEncoder`.
        length: Int. Tokens in the sequence.

    Returns:
        Int. FLOPs.

    Raises:
        ValueError: A size is missing, or `length` is out of range.
    """
    towers = 2 * encoder_flops(encoder, length, training=True)
    return towers + vocabulary_head_flops(_side_by_side(encoder), length)


def parameters(encoder):
    """Counts the parameters, by part.

    Args:
        encoder: Dict. Constructor arguments of `TransformerEncoder`.

    Returns:
        Dict from `towers`, `cloze_head` and `total` to parameters.
    """
    shared = embedding_parameters(encoder)
    parts = {
        "towers": 2 * encoder_parameters(encoder)
        - sum(shared[name] for name in EMBEDDING_PARTS),
        "cloze_head": vocabulary_head_parameters(_side_by_side(encoder)),
    }
    return {**parts, "total": sum(parts.values())}


def activation_bytes(encoder, batch_size, length, number_bytes):
    """Counts the most memory that a step's activations take.

    Args:
        encoder: Dict. Constructor arguments of `TransformerEncoder`.
        batch_size: Int. Sequences.
        length: Int. Tokens of a sequence.
        number_bytes: Int. Bytes of a number: 4, or 2 in mixed precision.

    Returns:
        Int. Bytes.
    """
    towers = 2 * encoder_activation_bytes(encoder, batch_size, length, number_bytes)
    chunk = batch_size * min(CHUNK_SIZE, length)
    return towers + vocabulary_head_activation_bytes(encoder, chunk, 4)


def _side_by_side(encoder):
    """Returns the sizes that the head sees: two hidden states beside each other."""
    return {**encoder_sizes(encoder), "hidden_size": 2 * encoder["hidden_size"]}
