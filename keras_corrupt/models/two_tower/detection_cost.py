"""What a two-tower generator and a discriminator cost, but for the latter's head."""

from keras_corrupt.corruption import num_masked
from keras_corrupt.encoders.cost import (
    embedding_parameters,
    encoder_flops,
    encoder_parameters,
)
from keras_corrupt.heads.cost import vocabulary_head_flops
from keras_corrupt.models.replaced_token_detection.cost import (
    complete_generator,
    discriminator_activation_bytes,
)
from keras_corrupt.models.two_tower import cost


def forward_flops(config, length):
    """Counts both networks on one training sequence, forward, dropout included.

    The generator's head runs at every position for the loss, and once more where
    samples are drawn.

    Args:
        config: Dict. `discriminator`, `generator` and `mask_rate`, as constructors take
            them.
        length: Int. Tokens in the sequence.

    Returns:
        Int. FLOPs, those of the discriminator's head left out.

    Raises:
        ValueError: A size is missing, or `length` is out of range.
    """
    generator = complete_generator(config)
    samples = num_masked(config.get("mask_rate", 0.15), length)
    wide = {**generator, "hidden_size": 2 * generator["hidden_size"]}
    return (
        cost.forward_flops(generator, length)
        + vocabulary_head_flops(wide, samples)
        + encoder_flops(config["discriminator"], length, training=True)
    )


def parameters(config):
    """Counts the parameters, by part; what is shared belongs to the discriminator.

    Args:
        config: Dict. `discriminator` and `generator`, as constructors take them.

    Returns:
        Dict from `discriminator` (the encoder), `generator` (its towers less what they
        share with it) and `cloze_head` to parameters.
    """
    generator = complete_generator(config)
    shared, counts = embedding_parameters(generator), cost.parameters(generator)
    return {
        "discriminator": encoder_parameters(config["discriminator"]),
        "generator": counts["towers"] - shared["token"] - shared["position"],
        "cloze_head": counts["cloze_head"],
    }


def activation_bytes(config, batch_size, length, number_bytes):
    """Counts the most memory that a step's activations take.

    Args:
        config: Dict. `discriminator`, `generator` and `mask_rate`, as constructors take
            them.
        batch_size: Int. Sequences.
        length: Int. Tokens of a sequence.
        number_bytes: Int. Bytes of a number: 4, or 2 in mixed precision.

    Returns:
        Int. Bytes.
    """
    sizes = batch_size, length, number_bytes
    return max(
        cost.activation_bytes(complete_generator(config), *sizes),
        discriminator_activation_bytes(config, *sizes),
    )
