"""What ELECTRA-TT costs: a two-tower generator, a discriminator with ELECTRA's head."""

from keras_corrupt.heads.cost import (
    replaced_token_head_flops,
    replaced_token_head_parameters,
)
from keras_corrupt.models.two_tower import detection_cost


def forward_flops(config, length):
    """Counts one training sequence, forward, dropout included.

    Args:
        config: Dict. Constructor arguments of `ElectraTT`.
        length: Int. Tokens in the sequence.

    Returns:
        Int. FLOPs.

    Raises:
        ValueError: A size is missing, or `length` is out of range.
    """
    head = replaced_token_head_flops(config["discriminator"], length)
    return detection_cost.forward_flops(config, length) + head


def parameters(config):
    """Counts the parameters, by part; what is shared belongs to the discriminator.

    Args:
        config: Dict. Constructor arguments of `ElectraTT`.

    Returns:
        Dict from `discriminator` (the encoder), `generator` (its towers less what they
        share with it), `cloze_head`, `rtd_head` and `total` to parameters.
    """
    head = replaced_token_head_parameters(config["discriminator"])
    parts = {**detection_cost.parameters(config), "rtd_head": head}
    return {**parts, "total": sum(parts.values())}


activation_bytes = detection_cost.activation_bytes
