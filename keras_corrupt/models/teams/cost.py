"""What TEAMS costs: ELECTRA's networks, the tasks' own layers, and a second head."""

from keras_corrupt.corruption import num_masked
from keras_corrupt.encoders.cost import (
    SOFTMAX_FLOPS,
    encoder_flops,
    encoder_parameters,
    encoder_sizes,
    transformer_layer_activation_bytes,
    transformer_layer_flops,
    transformer_layer_parameters,
)
from keras_corrupt.heads.cost import (
    replaced_token_head_flops,
    replaced_token_head_parameters,
    transform_flops,
    transform_parameters,
    vocabulary_head_parameters,
)
from keras_corrupt.models.masked_lm import cost as masked_lm
from keras_corrupt.models.replaced_token_detection.cost import (
    discriminator_activation_bytes,
)


def forward_flops(config, length):
    """Counts both networks on one training sequence, forward, dropout included.

    What they share is counted twice, for they read different sequences; the layers
    below the tasks' own run once for both tasks.

    Args:
        config: Dict. Constructor arguments of `Teams`.
        length: Int. Tokens in the sequence.

    Returns:
        Int. FLOPs.

    Raises:
        ValueError: A size is missing, or `length` is out of range.
    """
    discriminator = config["discriminator"]
    task_layer = transformer_layer_flops(discriminator, length, training=True)
    positions = num_masked(config.get("mask_rate", 0.15), length)
    candidates = config.get("num_negatives", 5) + 1
    return (
        masked_lm.forward_flops(_generator(config), length)
        + encoder_flops(discriminator, length, training=True)
        + config.get("task_layers", 1) * task_layer
        + replaced_token_head_flops(discriminator, length)
        + selection_head_flops(discriminator, positions, candidates)
    )


def selection_head_flops(encoder, num_positions, num_candidates):
    """Counts the multi-word selection head.

    Dense, gelu and layer norm at the embedding size, the candidates' look-ups (dense,
    like all), their inner products and the softmax.

    Args:
        encoder: Dict. Constructor arguments of `TransformerEncoder`.
        num_positions: Int. Masked positions of one sequence.
        num_candidates: Int. Candidates of one position, the original included.

    Returns:
        Int. FLOPs of one sequence, forward.

    Raises:
        ValueError: A size is missing.
    """
    sizes = encoder_sizes(encoder)
    size, vocabulary = sizes["embedding_size"], sizes["vocabulary_size"]
    candidate = 2 * vocabulary * size + 2 * size + SOFTMAX_FLOPS
    return num_positions * (transform_flops(sizes) + num_candidates * candidate)


def parameters(config, tied_layers=None):
    """Counts the parameters, by part; what is shared belongs to the discriminator.

    Args:
        config: Dict. Constructor arguments of `Teams`.
        tied_layers: Number of layers that the networks share; half of the
            generator's if not given.

    Returns:
        Dict from `discriminator` (the encoder that selects words), `rtd_layers`,
        `rtd_head`, `mws_head`, `generator` (its own layers), `masked_lm_head` and
        `total` to parameters.

    Example:

    >>> from keras_corrupt.models.teams.presets import PRESETS
    >>> counts = parameters(PRESETS["base"])
    >>> counts["discriminator"], counts["generator"] == 3 * counts["rtd_layers"]
    (108891648, True)
    """
    discriminator, depth = config["discriminator"], config["generator_layers"]
    layer = transformer_layer_parameters(discriminator)
    tied = depth // 2 if tied_layers is None else tied_layers
    parts = {
        "discriminator": encoder_parameters(discriminator),
        "rtd_layers": config.get("task_layers", 1) * layer,
        "rtd_head": replaced_token_head_parameters(discriminator),
        "mws_head": transform_parameters(discriminator),
        "generator": (depth - tied) * layer,
        "masked_lm_head": vocabulary_head_parameters(discriminator),
    }
    return {**parts, "total": sum(parts.values())}


def activation_bytes(config, batch_size, length, number_bytes):
    """Counts the most memory that a step's activations take.

    Args:
        config: Dict. Constructor arguments of `Teams`.
        batch_size: Int. Sequences.
        length: Int. Tokens of a sequence.
        number_bytes: Int. Bytes of a number: 4, or 2 in mixed precision.

    Returns:
        Int. Bytes.
    """
    arguments = batch_size, length, number_bytes
    layer = transformer_layer_activation_bytes(config["discriminator"], *arguments)
    return max(
        masked_lm.activation_bytes(_generator(config), *arguments),
        discriminator_activation_bytes(config, *arguments)
        + config.get("task_layers", 1) * layer,
    )


def _generator(config):
    """Returns the generator as a `MaskedLM`'s constructor arguments."""
    encoder = {**config["discriminator"], "num_layers": config["generator_layers"]}
    return {**config, "encoder": encoder}
