"""What ELECTRA costs: a masked language model, and a discriminator with its head."""

from keras_corrupt.encoders.cost import (
    embedding_parameters,
    encoder_flops,
    encoder_parameters,
)
from keras_corrupt.heads.cost import (
    replaced_token_head_flops,
    replaced_token_head_parameters,
    vocabulary_head_parameters,
)
from keras_corrupt.models.electra.presets import TIED_PARTS
from keras_corrupt.models.masked_lm import cost as masked_lm
from keras_corrupt.models.replaced_token_detection.cost import (
    complete_generator,
    discriminator_activation_bytes,
)


def forward_flops(config, length):
    """Counts both networks on one training sequence, forward, dropout included.

    The networks share embedding tables but read different sequences, so each pays
    for its own look-ups. Those of the differences in disentangled tables are left out.

    Args:
        config: Dict. Constructor arguments of `Electra`: `discriminator`, `generator`,
            `mask_rate`.
        length: Int. Tokens in the sequence.

    Returns:
        Int. FLOPs.

    Raises:
        ValueError: A size is missing, or `length` is out of range.
    """
    discriminator = config["discriminator"]
    generator = {**config, "encoder": complete_generator(config)}
    return (
        masked_lm.forward_flops(generator, length)
        + encoder_flops(discriminator, length, training=True)
        + replaced_token_head_flops(discriminator, length)
    )


def inference_flops(encoder, length):
    """Counts one sequence through an encoder and a binary head at every position.

    That head is in the thesis's column (table 5.3): base is 2.8e10 without it and
    2.9e10, as printed, with it. A sentence classifier costs `encoder_flops` and
    next to nothing more.

    Args:
        encoder: Dict. Constructor arguments of `TransformerEncoder`.
        length: Int. Tokens in the sequence.

    Returns:
        Int. FLOPs of one sequence; dropout is off.

    Raises:
        ValueError: A size is missing, or `length` is outside the encoder's range.

    Example:

    >>> from keras_corrupt.models.electra.presets import PRESETS
    >>> f"{inference_flops(PRESETS['base']['discriminator'], length=128):.1e}"
    '2.9e+10'
    """
    return encoder_flops(encoder, length) + replaced_token_head_flops(encoder, length)


def parameters(config):
    """Counts the parameters, by part; what is shared belongs to the discriminator.

    Of disentangled tables the discriminator has the differences.

    Args:
        config: Dict. Constructor arguments of `Electra`.

    Returns:
        Dict from `discriminator` (the encoder), `rtd_head`, `generator` (its
        encoder less what it shares), `masked_lm_head` and `total` to parameters.

    Example:

    >>> from keras_corrupt.models.electra.presets import PRESETS
    >>> counts = parameters(PRESETS["small"])
    >>> counts["discriminator"] + counts["rtd_head"], counts["total"]
    (13549057, 14196731)
    """
    discriminator, generator = config["discriminator"], complete_generator(config)
    tied = config.get("tied_embeddings", "token_and_position")
    own = encoder_parameters(generator)
    shared = embedding_parameters(generator)
    parts = {
        "discriminator": encoder_parameters(discriminator),
        "rtd_head": replaced_token_head_parameters(discriminator),
        "generator": 0
        if tied == "everything"
        else own - sum(shared[name] for name in TIED_PARTS[tied]),
        "masked_lm_head": vocabulary_head_parameters(generator),
    }
    return {**parts, "total": sum(parts.values())}


def activation_bytes(config, batch_size, length, number_bytes):
    """Counts the most memory that a step's activations take.

    Args:
        config: Dict. Constructor arguments of `Electra`.
        batch_size: Int. Sequences.
        length: Int. Tokens of a sequence.
        number_bytes: Int. Bytes of a number: 4, or 2 in mixed precision.

    Returns:
        Int. Bytes.
    """
    generator = {**config, "encoder": complete_generator(config)}
    arguments = batch_size, length, number_bytes
    return max(
        masked_lm.activation_bytes(generator, *arguments),
        discriminator_activation_bytes(config, *arguments),
    )
