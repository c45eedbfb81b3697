"""Parameter counts of encoders, heads and pretraining systems, by arithmetic.

Everything here works on constructor arguments, as in a preset, so a size is known
before a single weight is made. The pieces (embeddings, one transformer layer, each
head) are public because systems differ in which of them they share.

Three different counts are published for "the ELECTRA discriminator":

- Our encoder holds what the exported model needs: token, position and two segment
  embeddings, their layer norm, a projection where the embedding size is not the
  hidden size, and the layers. Small has 13,483,008 parameters.
- The public counts (13,548,800 for small, 109,482,240 for base, 335,141,888 for
  large) are KerasHub's `ElectraBackbone`, which ends in a pooler: a dense layer
  from hidden to hidden. The released checkpoints hold no weights for it, so they
  leave it at its initial values. The difference to ours is exactly
  `hidden_size * (hidden_size + 1)`.
- Our discriminator is the encoder and the replaced token detection head, whose
  first dense layer happens to have the pooler's shape. It is therefore
  `hidden_size + 1` larger than the public count: the second dense layer.
"""

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
        Dict. The same with `embedding_size`, `max_length` and `num_segments`.

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
    sizes = {"max_length": 512, "num_segments": 2, **encoder}
    sizes["embedding_size"] = encoder.get("embedding_size") or encoder["hidden_size"]
    return sizes


def complete_generator(preset):
    """Gives a generator every size that it takes over from its discriminator.

    A preset states only what differs. Vocabulary, embedding size and number of
    positions are common, because the two networks share those embeddings (Clark's
    thesis, 5.3.1).

    Args:
        preset: Dict. Constructor arguments of `Electra`.

    Returns:
        Dict. Constructor arguments of the generator's `TransformerEncoder`.

    Example:

    >>> from keras_corrupt.models.electra.presets import PRESETS
    >>> generator = complete_generator(PRESETS["base"])
    >>> generator["hidden_size"], generator["embedding_size"]
    (256, 768)
    """
    shared = encoder_sizes(preset["discriminator"])
    embedding_size = shared["embedding_size"]
    return {**shared, **preset["generator"], "embedding_size": embedding_size}


def _dense(inputs, outputs):
    return inputs * outputs + outputs


def _layer_norm(size):
    return 2 * size  # Scale and offset.


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
        "norm": _layer_norm(size),
    }


def transformer_layer_parameters(encoder):
    """Counts one transformer layer: attention, feed-forward, two layer norms.

    Args:
        encoder: Dict. Constructor arguments of `TransformerEncoder`.

    Returns:
        Int. Parameters of one layer.
    """
    sizes = encoder_sizes(encoder)
    hidden, inner = sizes["hidden_size"], sizes["intermediate_size"]
    attention = 4 * _dense(hidden, hidden)  # Query, key, value, output.
    feed_forward = _dense(hidden, inner) + _dense(inner, hidden)
    return attention + feed_forward + 2 * _layer_norm(hidden)


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
    projection = _dense(size, hidden) if size != hidden else 0
    layers = sizes["num_layers"] * transformer_layer_parameters(sizes)
    return sum(embedding_parameters(sizes).values()) + projection + layers


def masked_lm_head_parameters(encoder):
    """Counts the masked language model's head: dense, layer norm, output bias.

    The output matrix is the token embedding table, which the encoder counts.

    Args:
        encoder: Dict. Constructor arguments of `TransformerEncoder`.

    Returns:
        Int. Parameters.
    """
    sizes = encoder_sizes(encoder)
    size = sizes["embedding_size"]
    transform = _dense(sizes["hidden_size"], size) + _layer_norm(size)
    return transform + sizes["vocabulary_size"]


def rtd_head_parameters(encoder):
    """Counts the replaced token detection head: dense to hidden, dense to 1.

    Args:
        encoder: Dict. Constructor arguments of `TransformerEncoder`.

    Returns:
        Int. Parameters.
    """
    hidden = encoder_sizes(encoder)["hidden_size"]
    return _dense(hidden, hidden) + _dense(hidden, 1)


def masked_lm_parameters(preset):
    """Counts a masked language model, by part.

    Args:
        preset: Dict. Constructor arguments of `MaskedLM`.

    Returns:
        Dict from `encoder`, `masked_lm_head` and `total` to a number of parameters.
    """
    parts = {
        "encoder": encoder_parameters(preset["encoder"]),
        "masked_lm_head": masked_lm_head_parameters(preset["encoder"]),
    }
    return {**parts, "total": sum(parts.values())}


def electra_parameters(preset, tied_parts=("token", "position")):
    """Counts ELECTRA, by part; what the networks share belongs to the discriminator.

    Args:
        preset: Dict. Constructor arguments of `Electra`.
        tied_parts: Parts of the embeddings that the networks share; the thesis's by
            default. The released code shares `segment` and `norm` too.

    Returns:
        Dict from `discriminator` (the encoder), `rtd_head`, `generator` (its
        encoder less what it shares), `masked_lm_head` and `total` to parameters.

    Example:

    >>> from keras_corrupt.models.electra.presets import PRESETS
    >>> counts = electra_parameters(PRESETS["small"])
    >>> counts["discriminator"] + counts["rtd_head"], counts["total"]
    (13549057, 14196731)
    """
    discriminator, generator = preset["discriminator"], complete_generator(preset)
    tied = embedding_parameters(generator)
    parts = {
        "discriminator": encoder_parameters(discriminator),
        "rtd_head": rtd_head_parameters(discriminator),
        "generator": encoder_parameters(generator)
        - sum(tied[name] for name in tied_parts),
        "masked_lm_head": masked_lm_head_parameters(generator),
    }
    return {**parts, "total": sum(parts.values())}


def teams_parameters(preset, tied_layers=None):
    """Counts TEAMS, by part; what the networks share belongs to the discriminator.

    Args:
        preset: Dict. Constructor arguments of `Teams`.
        tied_layers: Number of layers that the networks share; half of the
            generator's if not given.

    Returns:
        Dict from `discriminator` (the encoder that selects words), `rtd_layers`,
        `rtd_head`, `mws_head`, `generator` (its own layers), `masked_lm_head` and
        `total` to parameters.

    Example:

    >>> from keras_corrupt.models.teams.presets import PRESETS
    >>> counts = teams_parameters(PRESETS["base"])
    >>> counts["discriminator"], counts["generator"] == 3 * counts["rtd_layers"]
    (108891648, True)
    """
    discriminator = encoder_sizes(preset["discriminator"])
    layer = transformer_layer_parameters(discriminator)
    depth = preset["generator_layers"]
    tied = depth // 2 if tied_layers is None else tied_layers
    mlm_head = masked_lm_head_parameters(discriminator)
    parts = {
        "discriminator": encoder_parameters(discriminator),
        "rtd_layers": preset.get("task_layers", 1) * layer,
        "rtd_head": rtd_head_parameters(discriminator),
        # The masked language model's without its bias.
        "mws_head": mlm_head - discriminator["vocabulary_size"],
        "generator": (depth - tied) * layer,
        "masked_lm_head": mlm_head,
    }
    return {**parts, "total": sum(parts.values())}
