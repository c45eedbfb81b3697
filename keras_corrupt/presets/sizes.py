"""What a preset's config asks for is compared with its weights' files by arithmetic.

A config of a few bytes can describe networks that fill any memory, or that take hours
to make.
"""

import inspect

from keras_corrupt.encoders import TransformerEncoder

#: Weights of a Transformer layer: six matrices and two norms, half of them biases.
LAYER_ARRAYS = 16
#: Arguments beside its sizes by which an encoder has more weights, or fewer.
PARTS = "relative_positions", "positions", "norm", "feed_forward", "use_bias"
#: Whole numbers of an encoder that decide the shapes of its weights.
SIZES = (
    *("vocabulary_size", "num_layers", "hidden_size", "intermediate_size"),
    *("num_heads", "embedding_size", "max_length", "num_segments"),
)


def check_sizes(cls, config, arrays, numbers):
    """Refuses a config whose encoders are larger than the saved weights.

    Args:
        cls: The model's class. One whose encoder is no Transformer has `parameters_of`,
            a function of the config.
        config: Dict. Its constructor's arguments.
        arrays: Int. Arrays in all the weights' files.
        numbers: Int. Numbers in them.

    Raises:
        ValueError: An encoder is larger, or a size of it is none.
    """
    count = getattr(cls, "parameters_of", None)
    if count is not None and count(config) > numbers:
        raise ValueError(
            f"it describes more than the weights that are saved, {numbers:,} numbers"
        )
    for name, encoder in _encoders(cls, config).items():
        sizes = encoder_sizes(encoder)
        whole = {size: sizes[size] for size in SIZES}
        relative = sizes["relative_positions"] or {}
        whole |= {n: value for n, value in relative.items() if n != "rounds_up"}
        for size, value in whole.items():
            if type(value) is not int or value < 0:
                raise ValueError(f"{size} of {name} is {value!r}, no whole number")
        if _layer_arrays(sizes) > arrays or _numbers(sizes | whole) > numbers:
            raise ValueError(
                f"{name} is larger than the weights that are saved, {numbers:,} "
                f"numbers in {arrays:,} arrays"
            )


def encoder_sizes(encoder):
    """Completes an encoder's sizes with the defaults of `TransformerEncoder`.

    Args:
        encoder: Dict. Constructor arguments of `TransformerEncoder`; those that are
            no sizes are kept and play no part.

    Returns:
        Dict. The same with all `SIZES` and `PARTS`.

    Raises:
        ValueError: A size without a default is missing.

    Example:

    >>> sizes = encoder_sizes({"vocabulary_size": 100, "num_layers": 2,
    ...     "hidden_size": 16, "intermediate_size": 64, "num_heads": 2})
    >>> sizes["embedding_size"], sizes["max_length"], sizes["num_segments"]
    (16, 512, 2)
    """
    parameters = inspect.signature(TransformerEncoder.__init__).parameters
    defaults = {n: parameters[n].default for n in (*SIZES, *PARTS)}
    sizes = {**defaults, **encoder}
    missing = [name for name in SIZES if sizes[name] is inspect.Parameter.empty]
    if missing:
        raise ValueError(
            f"`encoder` lacks {', '.join(missing)}, which have no defaults. Received: "
            f"encoder={encoder}."
        )
    sizes["embedding_size"] = sizes["embedding_size"] or sizes["hidden_size"]
    return sizes


def _layer_arrays(sizes):
    """Returns the number of weights in all of an encoder's layers, at least."""
    arrays = sizes["num_layers"] * LAYER_ARRAYS // (1 if sizes["use_bias"] else 2)
    return arrays - 2 * (sizes["norm"] == "pre")  # the first layer lacks a norm


def _numbers(sizes):
    """Returns the numbers in an encoder's weights, of which none exists yet."""
    embedding, hidden = sizes["embedding_size"], sizes["hidden_size"]
    bias = 1 if sizes["use_bias"] else 0
    rows = sizes["vocabulary_size"] + sizes["num_segments"]
    rows += sizes["max_length"] * (sizes["positions"] != "rotary")
    embeddings = (rows + 1 + bias) * embedding  # Two numbers of the norm, or one.
    projection = (embedding + bias) * hidden * (embedding != hidden)
    buckets = sizes.get("num_buckets", 0) * sizes["num_heads"]
    # Four matrices of attention; two of the feed-forward network, or three with gates;
    # biases; two norms. A final norm has the numbers that the first layer lacks.
    inner, matrices = sizes["intermediate_size"], 2 + (sizes["feed_forward"] != "gelu")
    layer = hidden * (4 * hidden + matrices * inner + 2 + 7 * bias)
    layer += (matrices - 1) * inner * bias
    return embeddings + projection + buckets + sizes["num_layers"] * layer


def network_arguments(cls):
    """Returns argument -> class of the network that it describes; main one first."""
    return getattr(cls, "network_arguments", {"encoder": TransformerEncoder})


def _encoders(cls, config):
    """Returns argument -> the encoder that it describes, completed by the first one."""
    networks = network_arguments(cls).items()
    names = [name for name, kind in networks if kind is TransformerEncoder]
    described = {name: config[name] for name in names if name in config}
    if not described:
        return {}
    main = next(iter(described.values()))
    # A further network can be the main one with another number of layers.
    layers = {
        name: {"num_layers": value}
        for name, value in config.items()
        if name.endswith("_layers") and not isinstance(value, str)
    }
    return {name: {**main, **sizes} for name, sizes in {**described, **layers}.items()}
