"""What an encoder costs, by arithmetic on its constructor arguments.

So a cost is known before a single weight is made. The pieces (embeddings, one layer)
are public because systems differ in which of them they share, and which they run twice.

FLOPs are counted by the rules of Clark's thesis, section 5.2.2: every mathematical
operation counts one, an `exp` no more than an `add`; multiplying a vector by an m x n
matrix counts 2 m n; embedding look-ups are dense, a one-hot vector times the table. All
functions count one sequence and one forward pass. Left out is what is done once for a
whole batch: looking up the biases of relative positions. A causal mask costs what a
padding mask does.

Bytes are those of `kernels/fused`, which keeps less than the same steps one by one:
what the gradients of a training step read, and at its peak what half a layer makes.
What `remat` computes again is not counted, though these kernels keep it.
"""

# Operations for one number. They multiply activations, never weights, so that
# moving any of them by a few moves a total by a fraction of a percent.
LAYER_NORM_FLOPS = 7  # Mean; subtract, square, mean; divide; scale, offset.
GELU_FLOPS = 9  # x / 2 * (1 + tanh(a * (x + b * x * x * x))): 6 products, 2 sums, tanh.
SOFTMAX_FLOPS = 5  # Maximum, subtract, exp, sum, divide.
DROPOUT_FLOPS = 4  # Draw, compare, multiply by the mask, rescale.
ATTENTION_LOGIT_FLOPS = 2  # Divide by the root of the head size, mask.

_REQUIRED = (
    "vocabulary_size",
    "num_layers",
    "hidden_size",
    "intermediate_size",
    "num_heads",
)


def encoder_sizes(encoder):
    """Completes an encoder's sizes with the defaults of `TransformerEncoder`.

    Args:
        encoder: Dict. Constructor arguments of `TransformerEncoder`; those that are
            no sizes are kept and play no part.

    Returns:
        Dict. The same with `embedding_size`, `max_length`, `num_segments` and
        `relative_positions`.

    Raises:
        ValueError: A size without a default is missing. A preset's generator states
            only what differs from its discriminator: see `complete_generator`.

    Example:

    >>> sizes = encoder_sizes({"vocabulary_size": 100, "num_layers": 2,
    ...     "hidden_size": 16, "intermediate_size": 64, "num_heads": 2})
    >>> sizes["embedding_size"], sizes["max_length"], sizes["num_segments"]
    (16, 512, 2)
    """
    missing = [name for name in _REQUIRED if name not in encoder]
    if missing:
        raise ValueError(
            f"`encoder` lacks {', '.join(missing)}. Received: encoder={encoder}. "
            "For the generator of a preset, pass `complete_generator(preset)`."
        )
    defaults = {"max_length": 512, "num_segments": 2, "relative_positions": None}
    sizes = {**defaults, **encoder}
    sizes["embedding_size"] = encoder.get("embedding_size") or encoder["hidden_size"]
    return sizes


# === FLOPs ===


def dense_flops(inputs, outputs):
    """Counts a vector's product with a matrix, and the bias."""
    return 2 * inputs * outputs + outputs


def sizes_at(encoder, length):
    """Returns `encoder_sizes`, or raises a `ValueError` if `length` is out of range."""
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
    sizes = sizes_at(encoder, length)
    size, hidden = sizes["embedding_size"], sizes["hidden_size"]
    rows = sizes["vocabulary_size"] + length + sizes["num_segments"]
    token = 2 * rows * size + 2 * size + LAYER_NORM_FLOPS * size
    token += DROPOUT_FLOPS * size * training
    token += dense_flops(size, hidden) if size != hidden else 0
    return length * token


def transformer_layer_flops(encoder, length, training=False):
    """Counts one transformer layer.

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
    sizes = sizes_at(encoder, length)
    hidden, inner = sizes["hidden_size"], sizes["intermediate_size"]
    dropout = DROPOUT_FLOPS * training
    has_bias = sizes["relative_positions"] is not None
    probability = ATTENTION_LOGIT_FLOPS + has_bias + SOFTMAX_FLOPS + dropout
    attention = (
        4 * dense_flops(hidden, hidden)  # Query, key, value, output.
        + 2 * (2 * hidden * length)  # Logits, and the mean of the values.
        + sizes["num_heads"] * length * probability
    )
    feed_forward = dense_flops(hidden, inner) + GELU_FLOPS * inner
    feed_forward += dense_flops(inner, hidden)
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


# === Parameters ===


def dense_parameters(inputs, outputs):
    """Counts a matrix and a bias."""
    return inputs * outputs + outputs


def layer_norm_parameters(size):
    """Counts scale and offset."""
    return 2 * size


def embedding_parameters(encoder):
    """Counts the parts of the embeddings, under the names that `tied_parts` uses.

    The projection from embedding to hidden size is no part of them: networks that
    share embeddings have different hidden sizes.

    Args:
        encoder: Dict. Constructor arguments of `TransformerEncoder`.

    Returns:
        Dict from `token`, `position`, `segment` and `norm` to parameters.

    Example:

    >>> from keras_corrupt.models.electra.presets import PRESETS
    >>> embedding_parameters(PRESETS["small"]["discriminator"])
    {'token': 3906816, 'position': 65536, 'segment': 256, 'norm': 256}
    """
    sizes = encoder_sizes(encoder)
    size = sizes["embedding_size"]
    return {
        "token": sizes["vocabulary_size"] * size,
        "position": sizes["max_length"] * size,
        "segment": sizes["num_segments"] * size,
        "norm": layer_norm_parameters(size),
    }


def position_bias_parameters(encoder):
    """Counts the table of relative positions, which all layers have in common.

    Args:
        encoder: Dict. Constructor arguments of `TransformerEncoder`.

    Returns:
        Int. Parameters; 0 without relative positions.
    """
    sizes = encoder_sizes(encoder)
    if sizes["relative_positions"] is None:
        return 0
    return sizes["relative_positions"]["num_buckets"] * sizes["num_heads"]


def transformer_layer_parameters(encoder):
    """Counts one transformer layer: attention, feed-forward, two layer norms.

    Args:
        encoder: Dict. Constructor arguments of `TransformerEncoder`.

    Returns:
        Int. Parameters of one layer.
    """
    sizes = encoder_sizes(encoder)
    hidden, inner = sizes["hidden_size"], sizes["intermediate_size"]
    attention = 4 * dense_parameters(hidden, hidden)  # Query, key, value, output.
    feed_forward = dense_parameters(hidden, inner) + dense_parameters(inner, hidden)
    return attention + feed_forward + 2 * layer_norm_parameters(hidden)


def encoder_parameters(encoder):
    """Counts an encoder: embeddings, projection, layers; no head and no pooler.

    Args:
        encoder: Dict. Constructor arguments of `TransformerEncoder`.

    Returns:
        Int. Parameters.

    Example:

    >>> from keras_corrupt.models.electra.presets import PRESETS
    >>> encoder_parameters(PRESETS["small"]["discriminator"])
    13483008
    """
    sizes = encoder_sizes(encoder)
    size, hidden = sizes["embedding_size"], sizes["hidden_size"]
    projection = dense_parameters(size, hidden) if size != hidden else 0
    layers = sizes["num_layers"] * transformer_layer_parameters(sizes)
    embeddings = sum(embedding_parameters(sizes).values())
    return embeddings + projection + position_bias_parameters(sizes) + layers


# === Bytes ===


def transformer_layer_activation_bytes(encoder, batch_size, length, number_bytes):
    """Counts what one layer keeps for the backward pass.

    Args:
        encoder: Dict. Constructor arguments of `TransformerEncoder`.
        batch_size: Int. Sequences.
        length: Int. Tokens of a sequence.
        number_bytes: Int. Bytes of a number: 4, or 2 in mixed precision.

    Returns:
        Int. Bytes.
    """
    sizes = encoder_sizes(encoder)
    tokens = batch_size * length
    remat = sizes.get("remat", "none")
    if remat == "layer":  # its input
        return tokens * sizes["hidden_size"] * number_bytes
    # Query, key, value; the heads' output; two norms' outputs and normalised inputs.
    hidden = tokens * sizes["hidden_size"] * 8
    # What gelu is taken of.
    inner = tokens * sizes["intermediate_size"]
    # The attention weights before dropout.
    pairs = (remat == "none") * tokens * length * sizes["num_heads"]
    return (hidden + inner + pairs) * number_bytes


def encoder_activation_bytes(encoder, batch_size, length, number_bytes):
    """Counts what a training step needs at its peak, weights aside.

    Args:
        encoder: Dict. Constructor arguments of `TransformerEncoder`.
        batch_size: Int. Sequences.
        length: Int. Tokens of a sequence.
        number_bytes: Int. Bytes of a number: 4, or 2 in mixed precision.

    Returns:
        Int. Bytes.
    """
    sizes = encoder_sizes(encoder)
    arguments = sizes, batch_size, length, number_bytes
    layers = sizes["num_layers"] * transformer_layer_activation_bytes(*arguments)
    tokens = batch_size * length
    widest = max(sizes["intermediate_size"], sizes["num_heads"] * length)
    # Going back through half a layer: what is made again, its gradient, its input's.
    half = 3 * tokens * widest * number_bytes
    if sizes.get("remat") == "layer":  # and, before, through the whole layer again
        whole = {**sizes, "remat": "none"}
        half += transformer_layer_activation_bytes(whole, *arguments[1:])
    # Token, position and segment, their sum, its norm and dropout, in float32.
    embeddings = tokens * sizes["embedding_size"] * 6 * 4
    # The bias of the logits and its gradient, in float32, for all layers.
    has_bias = sizes["relative_positions"] is not None
    bias = has_bias * sizes["num_heads"] * length**2 * 2 * 4
    return layers + half + embeddings + bias
