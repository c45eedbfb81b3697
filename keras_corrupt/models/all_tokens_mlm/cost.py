"""What All-Tokens MLM costs: ELECTRA's networks, and a softmax at every position."""

from keras_corrupt.encoders.cost import (
    embedding_parameters,
    encoder_flops,
    encoder_parameters,
)
from keras_corrupt.heads.cost import (
    replaced_token_head_flops,
    replaced_token_head_parameters,
    vocabulary_head_activation_bytes,
    vocabulary_head_flops,
    vocabulary_head_parameters,
)
from keras_corrupt.heads.vocabulary import CHUNK_SIZE
from keras_corrupt.models.masked_lm import cost as masked_lm
from keras_corrupt.models.replaced_token_detection.cost import (
    complete_generator,
    discriminator_activation_bytes,
)


def forward_flops(config, length):
    """Counts both networks on one training sequence, forward, dropout included.

    Args:
        config: Dict. Constructor arguments of `AllTokensMLM`.
        length: Int. Tokens in the sequence.

    Returns:
        Int. FLOPs.

    Raises:
        ValueError: A size is missing, or `length` is out of range.
    """
    main, generator = config["discriminator"], complete_generator(config)
    return (
        masked_lm.forward_flops({**config, "encoder": generator}, length)
        + encoder_flops(main, length, training=True)
        + replaced_token_head_flops(main, length)
        + vocabulary_head_flops(main, length)
    )


def parameters(config):
    """Counts the parameters, by part; what is shared belongs to the network kept.

    Args:
        config: Dict. Constructor arguments of `AllTokensMLM`.

    Returns:
        Dict from `discriminator` (the encoder that is kept), `copy_head`,
        `vocabulary_head`, `generator` (its encoder less what it shares),
        `masked_lm_head` and `total` to parameters.
    """
    main, generator = config["discriminator"], complete_generator(config)
    shared = embedding_parameters(generator)
    parts = {
        "discriminator": encoder_parameters(main),
        "copy_head": replaced_token_head_parameters(main),
        "vocabulary_head": vocabulary_head_parameters(main),
        "generator": encoder_parameters(generator)
        - shared["token"]
        - shared["position"],
        "masked_lm_head": vocabulary_head_parameters(generator),
    }
    return {**parts, "total": sum(parts.values())}


def activation_bytes(config, batch_size, length, number_bytes):
    """Counts the most memory that a step's activations take.

    Args:
        config: Dict. Constructor arguments of `AllTokensMLM`.
        batch_size: Int. Sequences.
        length: Int. Tokens of a sequence.
        number_bytes: Int. Bytes of a number: 4, or 2 in mixed precision.

    Returns:
        Int. Bytes.
    """
    sizes = batch_size, length, number_bytes
    generator = {**config, "encoder": complete_generator(config)}
    chunk = batch_size * min(CHUNK_SIZE, length)
    logits = vocabulary_head_activation_bytes(config["discriminator"], chunk, 4)
    return max(
        masked_lm.activation_bytes(generator, *sizes),
        discriminator_activation_bytes(config, *sizes) + logits,
    )
