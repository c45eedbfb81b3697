"""What an encoder's constructor refuses."""

import numbers

from keras_corrupt.encoders.feed_forward import FEED_FORWARDS
from keras_corrupt.encoders.masks import MASKS
from keras_corrupt.encoders.transformer_layer import REMAT

#: Where tokens' places come from: a table that is added to the embeddings, or
#: `RotaryPositions` in every layer.
POSITIONS = ("learned", "rotary")
#: Where a layer normalises: sub-layers' sums (BERT), or what sub-layers read.
NORMS = ("post", "pre")

_CHOICES = {
    "attention": MASKS,
    "feed_forward": FEED_FORWARDS,
    "norm": NORMS,
    "positions": POSITIONS,
    "remat": REMAT,
    "use_bias": (True, False),
}


#: Size -> the least that it can be.
_SIZES = {
    **dict.fromkeys(("vocabulary_size", "hidden_size", "intermediate_size"), 1),
    **dict.fromkeys(("num_heads", "embedding_size", "max_length"), 1),
    **{"num_layers": 0, "num_segments": 0},
}


def check_architecture(options):
    """Raises a `ValueError` for what no encoder can be.

    Args:
        options: Dict. The `architecture` of a `TransformerEncoder`.
    """
    for name, choices in _CHOICES.items():
        value = options[name]
        if not isinstance(value, (str, bool)) or value not in choices:
            raise ValueError(f"`{name}` must be one of {list(choices)}; got {value!r}.")
    for name, least in _SIZES.items():
        size = options[name]
        if not isinstance(size, numbers.Integral) or size < least:
            raise ValueError(
                f"`{name}` must be a whole number of at least {least}; got {size!r}."
            )
    hidden_size, num_heads = options["hidden_size"], options["num_heads"]
    if hidden_size % num_heads:
        raise ValueError(
            f"`num_heads` must divide `hidden_size`; got num_heads={num_heads}, "
            f"hidden_size={hidden_size}."
        )
    if options["positions"] == "rotary" and hidden_size // num_heads % 2:
        raise ValueError(
            'With positions="rotary" the width of a head, hidden_size / num_heads, '
            f"must be even; got num_heads={num_heads}, hidden_size={hidden_size}."
        )
    epsilon = options["layer_norm_epsilon"]
    if isinstance(epsilon, str) or not 0 < epsilon < 1:
        raise ValueError(
            "`layer_norm_epsilon` must be greater than 0 and less than 1; got "
            f"{epsilon!r}."
        )
    for name in ("dropout", "attention_dropout"):
        rate = options[name]
        if isinstance(rate, str) or not 0 <= rate < 1:
            raise ValueError(
                f"`{name}` must be at least 0 and less than 1; got {rate!r}."
            )
    for name in ("rotary_theta", "local_rotary_theta"):
        theta = options[name]
        if type(theta) not in (int, float) or not 1 < theta < float("inf"):
            raise ValueError(
                f"`{name}` must be a number greater than 1 (Su et al. have 10000); got "
                f"{theta!r}."
            )
    window, every = options["local_window"], options["global_every"]
    if window is not None and (type(window) is not int or window < 2 or window % 2):
        raise ValueError(
            "`local_window` must be `None` or an even number of tokens, half to either "
            f"side (ModernBERT has 128); got {window!r}."
        )
    if type(every) is not int or every < 1:
        raise ValueError(
            "`global_every` must be a whole number of layers, 1 or more (ModernBERT "
            f"has 3); got {every!r}."
        )


def check_tied(options, tied_to, tied_parts, tied_layers):
    """Raises a `ValueError` if another encoder's parts cannot be an encoder's own.

    Args:
        options: Dict. The encoder's `architecture`.
        tied_to: The other encoder, or `None`.
        tied_parts: Names of its parts.
        tied_layers: Int. How many of its layers.
    """
    num_layers, hidden_size = options["num_layers"], options["hidden_size"]
    available = min(num_layers, tied_to.num_layers) if tied_to is not None else 0
    if not 0 <= tied_layers <= available:
        raise ValueError(
            f"`tied_layers` must be from 0 to {available}, the layers that this "
            f"encoder and `tied_to` both have; got {tied_layers}."
        )
    if tied_layers and tied_to.hidden_size != hidden_size:
        raise ValueError(
            "`tied_layers` are of one width; got encoders of hidden_size="
            f"{hidden_size} and {tied_to.hidden_size}."
        )
    ours = options["relative_positions"], options["num_heads"]
    if tied_to is not None and "position_bias" in tied_parts:
        theirs = tied_to.relative_positions, tied_to.num_heads
        if theirs != ours:
            raise ValueError(
                '`tied_parts` has "position_bias", so `relative_positions` and '
                f"`num_heads` must be as many as `tied_to` has, {theirs}; got {ours}."
            )
