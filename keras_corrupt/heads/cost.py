"""What a head costs, by arithmetic on the constructor arguments of its encoder.

The rules are those of `encoders/cost.py`. Sampling is left out of the FLOPs: a handful
of operations for each logit, forward only.
"""

from keras_corrupt.encoders.cost import (
    GELU_FLOPS,
    LAYER_NORM_FLOPS,
    SOFTMAX_FLOPS,
    dense_flops,
    dense_parameters,
    encoder_sizes,
    layer_norm_parameters,
)

SIGMOID_FLOPS = 4  # Negate, exp, add, divide.


# === FLOPs ===


def vocabulary_head_flops(encoder, num_positions, transform=True):
    """Counts a vocabulary head, at some positions or at all.

    Dense, gelu and layer norm at the embedding size, the tied output matrix and its
    bias, the softmax, and the pick of the target's probability, which is a look-up
    and so dense as well.

    Args:
        encoder: Dict. Constructor arguments of `TransformerEncoder`.
        num_positions: Int. Positions predicted, in one sequence.
        transform: Bool. Whether there is more than the output matrix.

    Returns:
        Int. FLOPs of one sequence, forward.

    Raises:
        ValueError: A size is missing.
    """
    sizes = encoder_sizes(encoder)
    size, vocabulary = sizes["embedding_size"], sizes["vocabulary_size"]
    prediction = dense_flops(size, vocabulary) + (SOFTMAX_FLOPS + 2) * vocabulary
    return num_positions * (transform * transform_flops(sizes) + prediction)


def replaced_token_head_flops(encoder, num_positions, transform=True):
    """Counts the replaced token detection head.

    Args:
        encoder: Dict. Constructor arguments of `TransformerEncoder`.
        num_positions: Int. Tokens in one sequence.
        transform: Bool. Whether there is more than the linear layer to one number.

    Returns:
        Int. FLOPs of one sequence, forward.

    Raises:
        ValueError: A size is missing.
    """
    hidden = encoder_sizes(encoder)["hidden_size"]
    token = transform * (dense_flops(hidden, hidden) + GELU_FLOPS * hidden)
    return num_positions * (token + dense_flops(hidden, 1) + SIGMOID_FLOPS)


def transform_flops(encoder):
    """Counts the dense layer, gelu and layer norm that a head may begin with.

    Args:
        encoder: Dict. Constructor arguments of `TransformerEncoder`.

    Returns:
        Int. FLOPs of one position, forward.
    """
    sizes = encoder_sizes(encoder)
    size = sizes["embedding_size"]
    norm_and_gelu = (GELU_FLOPS + LAYER_NORM_FLOPS) * size
    return dense_flops(sizes["hidden_size"], size) + norm_and_gelu


# === Parameters ===


def vocabulary_head_parameters(encoder, transform=True):
    """Counts a vocabulary head: dense, layer norm, output bias.

    The output matrix is the token embedding table, which the encoder counts.

    Args:
        encoder: Dict. Constructor arguments of `TransformerEncoder`.
        transform: Bool. Whether it has the dense layer and the layer norm.

    Returns:
        Int. Parameters.
    """
    sizes = encoder_sizes(encoder)
    return transform * transform_parameters(sizes) + sizes["vocabulary_size"]


def replaced_token_head_parameters(encoder, transform=True):
    """Counts the replaced token detection head: dense to hidden, dense to 1.

    Args:
        encoder: Dict. Constructor arguments of `TransformerEncoder`.
        transform: Bool. Whether it has the first of the two.

    Returns:
        Int. Parameters.
    """
    hidden = encoder_sizes(encoder)["hidden_size"]
    return transform * dense_parameters(hidden, hidden) + dense_parameters(hidden, 1)


def transform_parameters(encoder):
    """Counts the dense layer and the layer norm that a head may begin with.

    Args:
        encoder: Dict. Constructor arguments of `TransformerEncoder`.

    Returns:
        Int. Parameters.
    """
    sizes = encoder_sizes(encoder)
    size = sizes["embedding_size"]
    return dense_parameters(sizes["hidden_size"], size) + layer_norm_parameters(size)


# === Bytes ===


def vocabulary_head_activation_bytes(encoder, num_positions, number_bytes):
    """Counts the logits of a training step and their gradient.

    Args:
        encoder: Dict. Constructor arguments of `TransformerEncoder`.
        num_positions: Int. Positions whose logits are held at once, in all sequences:
            the masked ones, or those of one chunk.
        number_bytes: Int. Bytes of a number: 4, or 2 in mixed precision; 4 for the
            methods that go through all positions, which are in float32.

    Returns:
        Int. Bytes.
    """
    return 2 * num_positions * encoder_sizes(encoder)["vocabulary_size"] * number_bytes
