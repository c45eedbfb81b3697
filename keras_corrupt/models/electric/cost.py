"""What Electric costs: a two-tower generator, a discriminator, an energy a token."""

from keras_corrupt.encoders.cost import encoder_sizes
from keras_corrupt.models.two_tower import detection_cost

#: Operations that make D's logit of an energy: log q and the odds are added.
LOGIT_FLOPS = 2


def forward_flops(config, length):
    """Counts one training sequence, forward, dropout included.

    Args:
        config: Dict. Constructor arguments of `Electric`.
        length: Int. Tokens in the sequence.

    Returns:
        Int. FLOPs.

    Raises:
        ValueError: A size is missing, or `length` is out of range.
    """
    energy = 2 * encoder_sizes(config["discriminator"])["hidden_size"] + LOGIT_FLOPS
    return detection_cost.forward_flops(config, length) + length * energy


def parameters(config):
    """Counts the parameters, by part; what is shared belongs to the discriminator.

    Args:
        config: Dict. Constructor arguments of `Electric`.

    Returns:
        Dict from `discriminator` (the encoder), `generator` (its towers less what they
        share with it), `cloze_head`, `energy_head` and `total` to parameters.
    """
    hidden = encoder_sizes(config["discriminator"])["hidden_size"]
    parts = {**detection_cost.parameters(config), "energy_head": hidden}
    return {**parts, "total": sum(parts.values())}


activation_bytes = detection_cost.activation_bytes
