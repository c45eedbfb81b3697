"""What ELECTRA's generator and discriminator have in common (Clark's thesis, 5.3.1)."""

from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.encoders.embeddings import DisentangledEmbedding
from keras_corrupt.models.networks import Discriminator, MaskedLMNetwork
from keras_corrupt.presets.named_variables import named_weights

#: `tied_embeddings` -> the embeddings that are the same variables in both
#: networks. `"everything"` ties the layers, too.
TIED_PARTS = {
    "none": (),
    "token": ("token",),
    "token_and_position": ("token", "position"),
    "all": ("token", "position", "segment", "norm"),
    "everything": ("token", "position", "segment", "norm", "projection"),
    "gradient_disentangled": (),
}

#: The tables that the thesis shares, which DeBERTaV3's way of sharing sets apart.
DISENTANGLED_PARTS = ("token", "position")


def make_networks(
    discriminator, generator, tied_embeddings, dtype, generator_class=MaskedLMNetwork
):
    """Makes both networks, with what they share.

    Args:
        discriminator: The discriminator's encoder, or its constructor arguments.
        generator: Dict. Arguments of the generator's encoder.
        tied_embeddings: One of `TIED_PARTS`.
        dtype: The networks' dtype policy.
        generator_class: `MaskedLMNetwork`, or a class derived from it.

    Returns:
        The `Discriminator` and the generator.

    Raises:
        ValueError: `tied_embeddings` is none of those, or all weights cannot be tied
            because the networks differ.
    """
    if tied_embeddings not in TIED_PARTS:
        raise ValueError(
            f"`tied_embeddings` must be one of {sorted(TIED_PARTS)}; got "
            f"{tied_embeddings!r}."
        )
    if tied_embeddings == "gradient_disentangled":
        if isinstance(discriminator, TransformerEncoder):
            raise ValueError(
                '`tied_embeddings="gradient_disentangled"` makes tables for the '
                "`discriminator`: give its constructor arguments, not an encoder."
            )
        generator = generator_class(generator, dtype=dtype, name="generator")
        tied = {
            "tied_to": generator.encoder,
            "tied_parts": DISENTANGLED_PARTS,
            "disentangled": True,
        }
        discriminator = {**discriminator, **tied}
        discriminator = Discriminator(discriminator, dtype=dtype, name="discriminator")
        return discriminator, generator
    discriminator = Discriminator(discriminator, dtype=dtype, name="discriminator")
    shared = discriminator.encoder
    tied = {"tied_to": shared, "tied_parts": TIED_PARTS[tied_embeddings]}
    if tied_embeddings == "everything":
        check_same(
            {**shared.architecture, **generator},
            shared.architecture,
            '`tied_embeddings="everything"` is for encoders of one size',
        )
        tied["tied_layers"] = shared.num_layers
        if shared.position_bias is not None:
            tied["tied_parts"] += ("position_bias",)
    generator = generator_class({**generator, **tied}, dtype=dtype, name="generator")
    return discriminator, generator


def check_same(generator, discriminator, why):
    """Raises a `ValueError`, which begins with `why`, unless the sizes are the same."""
    other = [n for n in discriminator if generator[n] != discriminator[n]]
    if other:
        sizes = ", ".join(f"{name}={discriminator[name]!r}" for name in other)
        raise ValueError(
            f"{why}: set the `generator`'s {sizes}; got "
            f"{', '.join(repr(generator[name]) for name in other)}. "
            "`generator_width=1` makes it as wide."
        )


def encoder_of_its_own(encoder):
    """Returns an encoder that has all its tables to itself.

    Args:
        encoder: A `TransformerEncoder`.

    Returns:
        The encoder; or, of one with `disentangled` tables, a copy whose tables are the
        sums, which it has from then on.
    """
    if not isinstance(encoder.embeddings.token, DisentangledEmbedding):
        return encoder
    copy = TransformerEncoder(
        **encoder.architecture, dtype=encoder.dtype_policy, name=encoder.name
    )
    weights = named_weights(encoder)
    for name, variable in named_weights(copy).items():
        table = name.removesuffix("/embeddings")
        if name in weights:
            variable.assign(weights[name])
        else:
            base = weights[f"{table}/base/embeddings"]
            variable.assign(base + weights[f"{table}/difference/embeddings"])
    return copy
