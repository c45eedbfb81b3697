"""What Replace MLM costs: two masked language models."""

from keras_corrupt.corruption import num_masked
from keras_corrupt.encoders.cost import embedding_parameters
from keras_corrupt.heads.cost import vocabulary_head_activation_bytes
from keras_corrupt.models.masked_lm import cost as masked_lm
from keras_corrupt.models.replaced_token_detection.cost import (
    complete_generator,
    discriminator_activation_bytes,
)


def forward_flops(config, length):
    """Counts both networks on one training sequence, forward, dropout included.

    Args:
        config: Dict. Constructor arguments of `ReplaceMLM`.
        length: Int. Tokens in the sequence.

    Returns:
        Int. FLOPs.

    Raises:
        ValueError: A size is missing, or `length` is out of range.
    """
    generator = {**config, "encoder": complete_generator(config)}
    main = {**config, "encoder": config["discriminator"]}
    return masked_lm.forward_flops(generator, length) + masked_lm.forward_flops(
        main, length
    )


def parameters(config):
    """Counts the parameters, by part; what is shared belongs to the network kept.

    Args:
        config: Dict. Constructor arguments of `ReplaceMLM`.

    Returns:
        Dict from `discriminator` (the encoder that is kept), `lm_head`, `generator`
        (its encoder less what it shares), `masked_lm_head` and `total` to parameters.
    """
    generator = complete_generator(config)
    ours = masked_lm.parameters({"encoder": config["discriminator"]})
    theirs = masked_lm.parameters({"encoder": generator})
    shared = embedding_parameters(generator)
    parts = {
        "discriminator": ours["encoder"],
        "lm_head": ours["masked_lm_head"],
        "generator": theirs["encoder"] - shared["token"] - shared["position"],
        "masked_lm_head": theirs["masked_lm_head"],
    }
    return {**parts, "total": sum(parts.values())}


def activation_bytes(config, batch_size, length, number_bytes):
    """Counts the most memory that a step's activations take.

    Args:
        config: Dict. Constructor arguments of `ReplaceMLM`.
        batch_size: Int. Sequences.
        length: Int. Tokens of a sequence.
        number_bytes: Int. Bytes of a number: 4, or 2 in mixed precision.

    Returns:
        Int. Bytes.
    """
    sizes = batch_size, length, number_bytes
    generator = {**config, "encoder": complete_generator(config)}
    positions = batch_size * num_masked(config.get("mask_rate", 0.15), length)
    logits = vocabulary_head_activation_bytes(
        config["discriminator"], positions, number_bytes
    )
    return max(
        masked_lm.activation_bytes(generator, *sizes),
        discriminator_activation_bytes(config, *sizes) + logits,
    )
