"""What COCO-LM costs: ELECTRA's networks, a second softmax and a second view."""

from keras_corrupt.corruption import num_masked
from keras_corrupt.encoders.cost import (
    embedding_parameters,
    encoder_activation_bytes,
    encoder_flops,
    encoder_parameters,
    encoder_sizes,
)
from keras_corrupt.heads.cost import (
    replaced_token_head_flops,
    replaced_token_head_parameters,
    transform_flops,
    transform_parameters,
    vocabulary_head_activation_bytes,
    vocabulary_head_flops,
    vocabulary_head_parameters,
)
from keras_corrupt.models.coco_lm.presets import TIED_PARTS
from keras_corrupt.models.masked_lm import cost as masked_lm
from keras_corrupt.models.replaced_token_detection.cost import (
    discriminator_activation_bytes,
)


def has_dropout(encoder):
    """Returns whether an encoder with these constructor arguments has any dropout."""
    return any(encoder.get(name, 0.1) for name in ("dropout", "attention_dropout"))


def complete_generator(config):
    """Gives the auxiliary network every size that it takes over from the main one.

    Args:
        config: Dict. Constructor arguments of `CocoLM`.

    Returns:
        Dict. Constructor arguments of the auxiliary `TransformerEncoder`.

    Example:

    >>> from keras_corrupt.models.coco_lm.presets import PRESETS
    >>> generator = complete_generator(PRESETS["base"])
    >>> generator["num_layers"], generator["hidden_size"]
    (4, 768)
    """
    shared = encoder_sizes(config["discriminator"])
    embedding_size = shared["embedding_size"]
    return {**shared, **config["generator"], "embedding_size": embedding_size}


def cropped_length(config, length):
    """Returns the tokens of the second view of a text of `length`, or 0 without one."""
    if config.get("sequence_task", "scl") == "none":
        return 0
    return 1 + num_masked(config.get("crop_fraction", 0.9), length - 1)


def sequence_head_sizes(discriminator):
    """Returns an encoder's sizes for `SequenceHead`, which keeps the width."""
    return {**discriminator, "embedding_size": discriminator["hidden_size"]}


def forward_flops(config, length):
    """Counts both networks on one training sequence, forward, dropout included.

    The auxiliary network runs again without dropout to draw samples. That pass has no
    backward pass, with which a run counts twice what is forward; so half of it counts
    here. Left out are the products of a batch's views, four for each pair of texts.

    Args:
        config: Dict. Constructor arguments of `CocoLM`.
        length: Int. Tokens in the sequence.

    Returns:
        Int. FLOPs.

    Raises:
        ValueError: A size is missing, or `length` is out of range.
    """
    discriminator, generator = config["discriminator"], complete_generator(config)
    positions = num_masked(config.get("mask_rate", 0.15), length)
    total = (
        masked_lm.forward_flops({**config, "encoder": generator}, length)
        + encoder_flops(discriminator, length, training=True)
        + replaced_token_head_flops(discriminator, length, transform=False)
    )
    if has_dropout(generator) and config.get("replacements", "sampled") == "sampled":
        sampling = encoder_flops(generator, length)
        total += (sampling + vocabulary_head_flops(generator, positions)) // 2
    task = config.get("token_task", "clm")
    if task != "rtd":
        predicted = positions + length * (task == "all_token_lm")
        total += vocabulary_head_flops(discriminator, predicted, transform=False)
    if config.get("sequence_transform"):
        total += 2 * transform_flops(sequence_head_sizes(discriminator))
    crop = cropped_length(config, length)
    return total + (encoder_flops(discriminator, crop, training=True) if crop else 0)


def parameters(config):
    """Counts the parameters, by part; what is shared belongs to the main network.

    Args:
        config: Dict. Constructor arguments of `CocoLM`.

    Returns:
        Dict from `discriminator` (the encoder), `rtd_head`, `vocabulary_head`,
        `sequence_head`, `generator` (its encoder less what it shares), `masked_lm_head`
        and `total` to parameters.

    Example:

    >>> from keras_corrupt.models.coco_lm.presets import PRESETS
    >>> counts = parameters(PRESETS["large_plus_plus"])
    >>> f"{counts['discriminator'] / 1e6:.0f}M"  # the paper says 367M
    '368M'
    """
    discriminator, generator = config["discriminator"], complete_generator(config)
    tied = TIED_PARTS[config.get("tied_embeddings", "token")]
    corrects = config.get("token_task", "clm") != "rtd"
    embeddings = embedding_parameters(generator)
    parts = {
        "discriminator": encoder_parameters(discriminator),
        "rtd_head": replaced_token_head_parameters(discriminator, transform=False),
        "vocabulary_head": corrects
        * vocabulary_head_parameters(discriminator, transform=False),
        "sequence_head": bool(config.get("sequence_transform"))
        * transform_parameters(sequence_head_sizes(discriminator)),
        "generator": encoder_parameters(generator) - sum(embeddings[n] for n in tied),
        "masked_lm_head": vocabulary_head_parameters(generator),
    }
    return {**parts, "total": sum(parts.values())}


def activation_bytes(config, batch_size, length, number_bytes):
    """Counts the most memory that a step's activations take.

    Args:
        config: Dict. Constructor arguments of `CocoLM`.
        batch_size: Int. Sequences.
        length: Int. Tokens of a sequence.
        number_bytes: Int. Bytes of a number: 4, or 2 in mixed precision.

    Returns:
        Int. Bytes.
    """
    discriminator = config["discriminator"]
    arguments = batch_size, length, number_bytes
    auxiliary = {**config, "encoder": complete_generator(config)}
    main = discriminator_activation_bytes(config, *arguments)
    if config.get("token_task", "clm") != "rtd":
        positions = batch_size * num_masked(config.get("mask_rate", 0.15), length)
        main += vocabulary_head_activation_bytes(discriminator, positions, number_bytes)
    crop = cropped_length(config, length)
    if crop:
        main += encoder_activation_bytes(discriminator, batch_size, crop, number_bytes)
    return max(masked_lm.activation_bytes(auxiliary, *arguments), main)
