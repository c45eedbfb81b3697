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

from keras_corrupt.encoders.cost import (
    embedding_parameters,
    encoder_parameters,
    encoder_sizes,
    transformer_layer_parameters,
)
from keras_corrupt.heads.cost import (
    replaced_token_head_parameters,
    selection_head_parameters,
    vocabulary_head_parameters,
)


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


def masked_lm_parameters(preset):
    """Counts a masked language model, by part.

    Args:
        preset: Dict. Constructor arguments of `MaskedLM`.

    Returns:
        Dict from `encoder`, `masked_lm_head` and `total` to a number of parameters.
    """
    parts = {
        "encoder": encoder_parameters(preset["encoder"]),
        "masked_lm_head": vocabulary_head_parameters(preset["encoder"]),
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
        "rtd_head": replaced_token_head_parameters(discriminator),
        "generator": encoder_parameters(generator)
        - sum(tied[name] for name in tied_parts),
        "masked_lm_head": vocabulary_head_parameters(generator),
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
    parts = {
        "discriminator": encoder_parameters(discriminator),
        "rtd_layers": preset.get("task_layers", 1) * layer,
        "rtd_head": replaced_token_head_parameters(discriminator),
        "mws_head": selection_head_parameters(discriminator),
        "generator": (depth - tied) * layer,
        "masked_lm_head": vocabulary_head_parameters(discriminator),
    }
    return {**parts, "total": sum(parts.values())}
