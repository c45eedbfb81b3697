"""Models of ours for the networks that other libraries' files have, and back."""

from keras_corrupt.heads import ReplacedTokenHead
from keras_corrupt.models import CocoLM, Electra, Electric, MaskedLM, Teams
from keras_corrupt.models.networks import Discriminator, MaskedLMNetwork
from keras_corrupt.models.tied_networks import TIED_PARTS

#: Values of `tied_embeddings`, from the most to the least.
_TIED = ("all", "token_and_position", "token", "none")


def new_masked_lm(encoder, tokenizer):
    """Returns a `MaskedLM` with new weights.

    Args:
        encoder: Constructor arguments of `TransformerEncoder`.
        tokenizer: The tokenizer, or `None`.
    """
    return MaskedLM(encoder, tokenizer=tokenizer, **_identity("masked_lm"))


def new_electra(encoder, tokenizer, generator=None, common=()):
    """Returns an `Electra` with new weights.

    Args:
        encoder: Constructor arguments of the discriminator's `TransformerEncoder`.
        tokenizer: The tokenizer, or `None`.
        generator: Arguments of the generator's encoder. If not given, it is a quarter
            as wide.
        common: Which parts of the embeddings both have in common.
    """
    if generator is None:
        heads = max(1, encoder["num_heads"] // 4)
        generator = {
            "num_heads": heads,
            "hidden_size": encoder["hidden_size"] // encoder["num_heads"] * heads,
            "intermediate_size": encoder["intermediate_size"] // 4 or 1,
        }
        common = TIED_PARTS["token_and_position"]
    elif generator["vocabulary_size"] != encoder["vocabulary_size"]:
        raise ValueError(
            f"The generator has {generator['vocabulary_size']} tokens, the "
            f"discriminator {encoder['vocabulary_size']}: they are no pair."
        )
    elif generator.get("embedding_size") != encoder.get("embedding_size"):
        raise ValueError(
            f"The generator's embedding_size is {generator.get('embedding_size')}, the "
            f"discriminator's {encoder.get('embedding_size')}: an Electra here has one."
        )
    tied = next(name for name in _TIED if set(TIED_PARTS[name]) <= set(common))
    return Electra(
        encoder,
        generator,
        tied_embeddings=tied,
        tokenizer=tokenizer,
        **_identity("electra"),
    )


def new_electric(encoder, tokenizer, tower):
    """Returns an `Electric` with new weights.

    Args:
        encoder: Constructor arguments of the discriminator's `TransformerEncoder`.
        tokenizer: The tokenizer, or `None`.
        tower: Arguments of each tower of the generator.
    """
    return Electric(encoder, tower, tokenizer=tokenizer, **_identity("electric"))


def new_coco_lm(encoder):
    """Returns a `CocoLM` with new weights, without a tokenizer.

    Args:
        encoder: Constructor arguments of the main network's `TransformerEncoder`. The
            auxiliary one's layers are a third of its, of more than 12 a quarter. The
            last id is the mask's.
    """
    layers = encoder["num_layers"]
    return CocoLM(
        encoder,
        {"num_layers": layers // (3 if layers <= 12 else 4) or 1},
        mask_id=encoder["vocabulary_size"] - 1,
        unmaskable_ids=(encoder["padding_id"],),
        **_identity("coco_lm"),
    )


def new_teams(encoder, tokenizer, generator_layers, tied_layers, task_layers):
    """Returns a `Teams` with new weights.

    Args:
        encoder: Constructor arguments of the discriminator's `TransformerEncoder`.
        tokenizer: The tokenizer, or `None`.
        generator_layers: Number of the generator's layers.
        tied_layers: How many of them are the discriminator's.
        task_layers: Number of the layers that each task has to itself.
    """
    if tied_layers == generator_layers:
        tied = "all"
    else:
        tied = (
            "half" if tied_layers and tied_layers >= generator_layers // 2 else "none"
        )
    return Teams(
        encoder,
        generator_layers,
        tied_layers=tied,
        task_layers=task_layers,
        tokenizer=tokenizer,
        **_identity("teams"),
    )


def _identity(name):
    # Without a name, Keras would number it.
    return {"name": name, "dtype": "float32"}


def discriminator_of(model):
    """Returns the network with ELECTRA's two-layer head, `None` if there is none."""
    network = model.networks.get("discriminator")
    is_electra = type(network) is Discriminator and type(network.head) is (
        ReplacedTokenHead
    )
    return network if is_electra and network.head.transform is not None else None


def generator_of(model):
    """Returns the network that is a masked language model, `None` if there is none."""
    generators = [n for n in model.networks.values() if type(n) is MaskedLMNetwork]
    return generators[0] if generators else None
