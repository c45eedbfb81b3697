"""What a discriminator and the generator that runs before it need."""

from keras_corrupt.corruption import num_masked
from keras_corrupt.encoders.cost import encoder_activation_bytes, encoder_sizes
from keras_corrupt.heads.cost import vocabulary_head_activation_bytes


def complete_generator(config):
    """Gives a generator every size that it takes over from its discriminator.

    A preset states only what differs. Vocabulary, embedding size and number of
    positions are common, because the two networks share those embeddings (Clark's
    thesis, 5.3.1).

    Args:
        config: Dict. `discriminator` and `generator`, as constructors take them.

    Returns:
        Dict. Constructor arguments of the generator's `TransformerEncoder`.

    Example:

    >>> from keras_corrupt.models.encoder_sizes import DETECTORS
    >>> generator = complete_generator(DETECTORS["base"])
    >>> generator["hidden_size"], generator["embedding_size"]
    (256, 768)
    """
    shared = encoder_sizes(config["discriminator"])
    embedding_size = shared["embedding_size"]
    return {**shared, **config["generator"], "embedding_size": embedding_size}


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
