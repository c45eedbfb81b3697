"""What a discriminator needs beside a generator that has run before it."""

from keras_corrupt.corruption import num_masked
from keras_corrupt.encoders.cost import encoder_activation_bytes
from keras_corrupt.heads.cost import vocabulary_head_activation_bytes


def discriminator_activation_bytes(config, batch_size, length, number_bytes):
    """Counts the discriminator's activations, and the logits that are left.

    A generator's activations are given free before the discriminator has run, so that
    a step has two peaks: the vocabulary's logits and their gradient with the
    generator's activations, or this one.

    Args:
        config: Dict. `discriminator` and `mask_rate`, as constructors take them.
        batch_size: Int. Sequences.
        length: Int. Tokens of a sequence.
        number_bytes: Int. Bytes of a number: 4, or 2 in mixed precision.

    Returns:
        Int. Bytes.
    """
    encoder = config["discriminator"]
    positions = batch_size * num_masked(config.get("mask_rate", 0.15), length)
    logits = vocabulary_head_activation_bytes(encoder, positions, number_bytes) // 2
    return logits + encoder_activation_bytes(encoder, batch_size, length, number_bytes)
