"""What a masked language model costs: an encoder, a head at the masked positions."""

from keras_corrupt.corruption import num_masked
from keras_corrupt.encoders.cost import (
    encoder_activation_bytes,
    encoder_flops,
    encoder_parameters,
)
from keras_corrupt.heads.cost import (
    vocabulary_head_activation_bytes,
    vocabulary_head_flops,
    vocabulary_head_parameters,
)


def forward_flops(config, length):
    """Counts one training sequence, forward, dropout included.

    Args:
        config: Dict. Constructor arguments of `MaskedLM`: `encoder`, `mask_rate`.
        length: Int. Tokens in the sequence.

    Returns:
        Int. FLOPs.

    Raises:
        ValueError: A size is missing, or `length` is out of range.
    """
    encoder = config["encoder"]
    positions = num_masked(config.get("mask_rate", 0.15), length)
    return encoder_flops(encoder, length, training=True) + vocabulary_head_flops(
        encoder, positions
    )


def parameters(config):
    """Counts the parameters, by part.

    Args:
        config: Dict. Constructor arguments of `MaskedLM`.

    Returns:
        Dict from `encoder`, `masked_lm_head` and `total` to parameters.
    """
    parts = {
        "encoder": encoder_parameters(config["encoder"]),
        "masked_lm_head": vocabulary_head_parameters(config["encoder"]),
    }
    return {**parts, "total": sum(parts.values())}


def activation_bytes(config, batch_size, length, number_bytes):
    """Counts the most memory that a step's activations take.

    Args:
        config: Dict. Constructor arguments of `MaskedLM`.
        batch_size: Int. Sequences.
        length: Int. Tokens of a sequence.
        number_bytes: Int. Bytes of a number: 4, or 2 in mixed precision.

    Returns:
        Int. Bytes.
    """
    positions = batch_size * num_masked(config.get("mask_rate", 0.15), length)
    return encoder_activation_bytes(
        config["encoder"], batch_size, length, number_bytes
    ) + vocabulary_head_activation_bytes(config["encoder"], positions, number_bytes)
