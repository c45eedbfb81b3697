"""Floating point operations (FLOPs) of inference and pretraining, by arithmetic.

The rules are those of Clark's thesis, section 5.2.2, so that what a run costs here
can be put on the axes of its figures:

- Every mathematical operation counts one, an `exp` no more than an `add`. Multiplying
  a vector by an m x n matrix counts 2 m n: m n multiplications, m n additions.
- The backward pass costs what the forward pass costs.
- Embedding look-ups are dense: a one-hot vector times the table.

Left out, because together they stay below 0.2% of a run: choosing positions and
sampling from a generator (a handful of operations for each logit, forward only), the
losses after the softmax or the logit, and the optimizer (about a dozen operations
for each parameter and step, against hundreds of millions for each token).

All functions count one sequence and one forward pass unless they say otherwise. A
new system adds its own sum of the pieces, which stand in `encoders/cost.py` and
`heads/cost.py`:
`training_flops(my_system_flops(preset, length), batch_size, steps)`.

Run `python -m keras_corrupt.evaluation.flops` to see the thesis's tables beside ours.
"""

from keras_corrupt.corruption.masking import num_masked
from keras_corrupt.encoders.cost import encoder_flops, transformer_layer_flops
from keras_corrupt.evaluation.parameters import complete_generator
from keras_corrupt.heads.cost import (
    replaced_token_head_flops,
    selection_head_flops,
    vocabulary_head_flops,
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


def masked_lm_flops(preset, length):
    """Counts a masked language model on one training sequence, forward.

    Args:
        preset: Dict. Constructor arguments of `MaskedLM`: `encoder`, `mask_rate`.
        length: Int. Tokens in the sequence.

    Returns:
        Int. FLOPs of one sequence, forward, dropout included.

    Raises:
        ValueError: A size is missing, or `length` is out of range.
    """
    encoder = preset["encoder"]
    head = vocabulary_head_flops(encoder, num_masked(preset["mask_rate"], length))
    return encoder_flops(encoder, length, training=True) + head


def electra_flops(preset, length):
    """Counts ELECTRA on one training sequence: both networks, forward.

    The networks share embedding tables but read different sequences, so each pays
    for its own look-ups.

    Args:
        preset: Dict. Constructor arguments of `Electra`: `discriminator`, `generator`,
            `mask_rate`.
        length: Int. Tokens in the sequence.

    Returns:
        Int. FLOPs of one sequence, forward, dropout included.

    Raises:
        ValueError: A size is missing, or `length` is out of range.
    """
    discriminator = preset["discriminator"]
    generator = {**preset, "encoder": complete_generator(preset)}
    return (
        masked_lm_flops(generator, length)
        + encoder_flops(discriminator, length, training=True)
        + replaced_token_head_flops(discriminator, length)
    )


def teams_flops(preset, length):
    """Counts TEAMS on one training sequence: both networks, forward.

    What they share is counted twice, for they read different sequences; the layers
    below the tasks' own run once for both tasks.

    Args:
        preset: Dict. Constructor arguments of `Teams`.
        length: Int. Tokens in the sequence.

    Returns:
        Int. FLOPs of one sequence, forward, dropout included.

    Raises:
        ValueError: A size is missing, or `length` is out of range.
    """
    discriminator, mask_rate = preset["discriminator"], preset["mask_rate"]
    generator = {**discriminator, "num_layers": preset["generator_layers"]}
    task_layer = transformer_layer_flops(discriminator, length, training=True)
    candidates = preset.get("num_negatives", 5) + 1
    return (
        masked_lm_flops({"encoder": generator, "mask_rate": mask_rate}, length)
        + encoder_flops(discriminator, length, training=True)
        + preset.get("task_layers", 1) * task_layer
        + replaced_token_head_flops(discriminator, length)
        + selection_head_flops(discriminator, num_masked(mask_rate, length), candidates)
    )


def training_flops(forward_flops, batch_size, steps):
    """Counts a run: forward and backward, for every sequence of every step.

    Args:
        forward_flops: Int. FLOPs of one training sequence, forward, such as
            `electra_flops` gives.
        batch_size: Int. Sequences in a step, over all devices.
        steps: Int. Steps.

    Returns:
        Int. FLOPs.

    Example:

    >>> from keras_corrupt.models.electra.presets import PRESETS
    >>> forward = electra_flops(PRESETS["base"], length=512)
    >>> f"{training_flops(forward, batch_size=256, steps=766_000):.1e}"
    '6.4e+19'
    """
    return 2 * forward_flops * batch_size * steps


if __name__ == "__main__":
    from keras_corrupt.evaluation.thesis_tables import print_tables

    print_tables()
