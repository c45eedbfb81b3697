"""What a run costs, from what one sequence costs.

Each system adds up its pieces in its folder: `encoders/cost.py` and `heads/cost.py` say
how they are counted.
"""


def training_flops(forward_flops, batch_size, steps):
    """Counts a run: forward and backward, for every sequence of every step.

    The backward pass counts as much as the forward pass (Clark's thesis, 5.2.2). Left
    out, because together they stay below 0.2% of a run: choosing positions and
    sampling from a generator, the losses after the softmax or the logit, and the
    optimizer (about a dozen operations for each parameter and step, against hundreds
    of millions for each token).

    Args:
        forward_flops: Int. FLOPs of one training sequence, forward, as
            `Pretrainer.forward_flops` gives.
        batch_size: Int. Sequences in a step, over all devices.
        steps: Int. Steps.

    Returns:
        Int. FLOPs.

    Example:

    >>> from keras_corrupt.models.electra import cost
    >>> from keras_corrupt.models.electra.presets import PRESETS
    >>> forward = cost.forward_flops(PRESETS["base"], length=512)
    >>> f"{training_flops(forward, batch_size=256, steps=766_000):.1e}"
    '6.4e+19'
    """
    return 2 * forward_flops * batch_size * steps
