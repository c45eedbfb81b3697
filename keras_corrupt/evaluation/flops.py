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
new system adds its own sum of the pieces here:
`training_flops(my_system_flops(preset, length), batch_size, steps)`.

Run `python -m keras_corrupt.evaluation.flops` to see the thesis's tables beside ours.
"""

from keras_corrupt.corruption.masking import num_masked
from keras_corrupt.evaluation.parameters import complete_generator, encoder_sizes

# Operations for one number. They multiply activations, never weights, so that
# moving any of them by a few moves a total by a fraction of a percent.
LAYER_NORM_FLOPS = 7  # Mean; subtract, square, mean; divide; scale, offset.
GELU_FLOPS = 9  # x / 2 * (1 + tanh(a * (x + b * x * x * x))): 6 products, 2 sums, tanh.
SOFTMAX_FLOPS = 5  # Maximum, subtract, exp, sum, divide.
SIGMOID_FLOPS = 4  # Negate, exp, add, divide.
DROPOUT_FLOPS = 4  # Draw, compare, multiply by the mask, rescale.
ATTENTION_LOGIT_FLOPS = 2  # Divide by the root of the head size, mask.


def _dense(inputs, outputs):
    return 2 * inputs * outputs + outputs


def _sizes(encoder, length):
    sizes = encoder_sizes(encoder)
    if not 1 <= length <= sizes["max_length"]:
        raise ValueError(
            f"`length` must be from 1 to the encoder's `max_length`, "
            f"{sizes['max_length']}. Received: length={length}. "
            "Shorten the sequences or raise `max_length`."
        )
    return sizes


def embedding_flops(encoder, length, training=False):
    """Counts token, position and segment look-ups, layer norm and projection.

    Args:
        encoder: Dict. Constructor arguments of `TransformerEncoder`.
        length: Int. Tokens in the sequence. Position look-ups are over the
            `length` rows in use.
        training: Bool. Whether dropout runs.

    Returns:
        Int. FLOPs of one sequence, forward.

    Raises:
        ValueError: A size is missing, or `length` is outside the encoder's range.
    """
    sizes = _sizes(encoder, length)
    size, hidden = sizes["embedding_size"], sizes["hidden_size"]
    rows = sizes["vocabulary_size"] + length + sizes["num_segments"]
    token = 2 * rows * size + 2 * size + LAYER_NORM_FLOPS * size
    token += DROPOUT_FLOPS * size * training
    token += _dense(size, hidden) if size != hidden else 0
    return length * token


def transformer_layer_flops(encoder, length, training=False):
    """Counts one transformer layer with full (bidirectional) attention.

    Args:
        encoder: Dict. Constructor arguments of `TransformerEncoder`.
        length: Int. Tokens in the sequence.
        training: Bool. Whether dropout runs, on attention probabilities and on the
            outputs of both sub-layers.

    Returns:
        Int. FLOPs of one sequence, forward.

    Raises:
        ValueError: A size is missing, or `length` is outside the encoder's range.
    """
    sizes = _sizes(encoder, length)
    hidden, inner = sizes["hidden_size"], sizes["intermediate_size"]
    dropout = DROPOUT_FLOPS * training
    probability = ATTENTION_LOGIT_FLOPS + SOFTMAX_FLOPS + dropout
    attention = (
        4 * _dense(hidden, hidden)  # Query, key, value, output.
        + 2 * (2 * hidden * length)  # Logits, and the mean of the values.
        + sizes["num_heads"] * length * probability
    )
    feed_forward = _dense(hidden, inner) + GELU_FLOPS * inner + _dense(inner, hidden)
    sublayer_output = (dropout + 1 + LAYER_NORM_FLOPS) * hidden  # 1: residual.
    return length * (attention + feed_forward + 2 * sublayer_output)


def encoder_flops(encoder, length, training=False):
    """Counts an encoder: embeddings and transformer layers, no head.

    Args:
        encoder: Dict. Constructor arguments of `TransformerEncoder`.
        length: Int. Tokens in the sequence.
        training: Bool. Whether dropout runs.

    Returns:
        Int. FLOPs of one sequence, forward.

    Raises:
        ValueError: A size is missing, or `length` is outside the encoder's range.

    Example:

    >>> from keras_corrupt.models.electra.presets import PRESETS
    >>> f"{encoder_flops(PRESETS['small']['discriminator'], length=128):.1e}"
    '3.7e+09'
    """
    layer = transformer_layer_flops(encoder, length, training)
    return embedding_flops(encoder, length, training) + encoder["num_layers"] * layer


def masked_lm_head_flops(encoder, num_positions):
    """Counts the masked language model's head, at the masked positions only.

    Dense, gelu and layer norm at the embedding size, the tied output matrix and its
    bias, the softmax, and the pick of the target's probability, which is a look-up
    and so dense as well.

    Args:
        encoder: Dict. Constructor arguments of `TransformerEncoder`.
        num_positions: Int. Positions predicted, in one sequence.

    Returns:
        Int. FLOPs of one sequence, forward.

    Raises:
        ValueError: A size is missing.
    """
    sizes = encoder_sizes(encoder)
    size, vocabulary = sizes["embedding_size"], sizes["vocabulary_size"]
    transform = _dense(sizes["hidden_size"], size)
    transform += (GELU_FLOPS + LAYER_NORM_FLOPS) * size
    prediction = _dense(size, vocabulary) + (SOFTMAX_FLOPS + 2) * vocabulary
    return num_positions * (transform + prediction)


def rtd_head_flops(encoder, length):
    """Counts the replaced token detection head, at every position.

    Args:
        encoder: Dict. Constructor arguments of `TransformerEncoder`.
        length: Int. Tokens in the sequence.

    Returns:
        Int. FLOPs of one sequence, forward.

    Raises:
        ValueError: A size is missing, or `length` is outside the encoder's range.
    """
    hidden = _sizes(encoder, length)["hidden_size"]
    token = _dense(hidden, hidden) + GELU_FLOPS * hidden
    return length * (token + _dense(hidden, 1) + SIGMOID_FLOPS)


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
    return encoder_flops(encoder, length) + rtd_head_flops(encoder, length)


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
    head = masked_lm_head_flops(encoder, num_masked(preset["mask_rate"], length))
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
        + rtd_head_flops(discriminator, length)
    )


def mws_head_flops(encoder, num_positions, num_candidates):
    """Counts the multi-word selection head, at the masked positions only.

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
    size = sizes["embedding_size"]
    transform = _dense(sizes["hidden_size"], size)
    transform += (GELU_FLOPS + LAYER_NORM_FLOPS) * size
    candidate = 2 * sizes["vocabulary_size"] * size + 2 * size + SOFTMAX_FLOPS
    return num_positions * (transform + num_candidates * candidate)


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
        + rtd_head_flops(discriminator, length)
        + mws_head_flops(discriminator, num_masked(mask_rate, length), candidates)
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
