"""What ELECTRA costs without a generator network: a discriminator with its head."""

from keras_corrupt.encoders.cost import (
    encoder_activation_bytes,
    encoder_flops,
    encoder_parameters,
)
from keras_corrupt.heads.cost import (
    replaced_token_head_flops,
    replaced_token_head_parameters,
)


def forward_flops(config, length):
    """Counts one training sequence, forward, dropout included; draws count nothing.

    Args:
        config: Dict. Constructor arguments of `UnigramElectra`.
        length: Int. Tokens in the sequence.

    Returns:
        Int. FLOPs.

    Raises:
        ValueError: A size is missing, or `length` is out of range.
    """
    discriminator = config["discriminator"]
    return encoder_flops(
        discriminator, length, training=True
    ) + replaced_token_head_flops(discriminator, length)


def parameters(config):
    """Counts the parameters, by part; frequencies are none.

    Args:
        config: Dict. Constructor arguments of `UnigramElectra`.

    Returns:
        Dict from `discriminator` (the encoder), `rtd_head` and `total` to parameters.
    """
    parts = {
        "discriminator": encoder_parameters(config["discriminator"]),
        "rtd_head": replaced_token_head_parameters(config["discriminator"]),
    }
    return {**parts, "total": sum(parts.values())}


def activation_bytes(config, batch_size, length, number_bytes):
    """Counts the most memory that a step's activations take.

    Args:
        config: Dict. Constructor arguments of `UnigramElectra`.
        batch_size: Int. Sequences.
        length: Int. Tokens of a sequence.
        number_bytes: Int. Bytes of a number: 4, or 2 in mixed precision.

    Returns:
        Int. Bytes.
    """
    return encoder_activation_bytes(
        config["discriminator"], batch_size, length, number_bytes
    )
