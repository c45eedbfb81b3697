"""Sizes that a generator takes over from its discriminator."""

from keras_corrupt.presets.sizes import encoder_sizes


def check_shared_sizes(discriminator, generator):
    """Raises a `ValueError` if shared embeddings are not what a generator asks for.

    They must be as wide, and have a position for all that the discriminator reads.

    Args:
        discriminator: Dict. Constructor arguments of the encoder that it shares with.
        generator: Dict. Its own, where they differ.
    """
    shared = encoder_sizes(discriminator)
    if generator.get("embedding_size") not in (None, shared["embedding_size"]):
        name = "embedding_size"
    elif generator.get("max_length", shared["max_length"]) < shared["max_length"]:
        name = "max_length"
    else:
        return
    raise ValueError(
        f"`generator` has {name}={generator[name]}, but shares the discriminator's "
        f"embeddings, of {name}={shared[name]}. Leave it out."
    )


def complete_generator(config):
    """Gives a generator every size that it takes over from its discriminator.

    A preset states only what differs. Vocabulary, embedding size and number of
    positions are common, because the two networks share those embeddings (Clark's
    thesis, 5.3.1).

    Args:
        config: Dict. `discriminator`, `generator` and, if there is one,
            `generator_width`, as constructors take them.

    Returns:
        Dict. Constructor arguments of the generator's `TransformerEncoder`.

    Raises:
        ValueError: `generator_width` is no positive number, or does not make whole
            sizes, or the generator has other embeddings.

    Example:

    >>> from keras_corrupt.models.sizes import DETECTORS
    >>> generator = complete_generator(DETECTORS["base"])
    >>> generator["hidden_size"], generator["embedding_size"]
    (256, 768)
    >>> half = complete_generator({**DETECTORS["base"], "generator_width": 0.5})
    >>> half["hidden_size"], half["intermediate_size"], half["num_heads"]
    (384, 1536, 6)
    """
    check_shared_sizes(config["discriminator"], config["generator"])
    shared = encoder_sizes(config["discriminator"])
    embedding_size = shared["embedding_size"]
    sizes = {**config["generator"], "embedding_size": embedding_size}
    width = config.get("generator_width")
    return {**shared, **sizes, **({} if width is None else _scaled(shared, width))}


def _scaled(sizes, width):
    """Returns the sizes that a narrower encoder has `width` times."""
    names = "hidden_size", "intermediate_size", "num_heads"
    is_number = isinstance(width, (int, float)) and 0 < width < float("inf")
    scaled = {name: round(width * sizes[name]) if is_number else 0 for name in names}
    for name, size in scaled.items():
        # A third is 0.333, too.
        if not is_number or not abs(size - width * sizes[name]) < 0.01 * size:
            raise ValueError(
                "`generator_width` must be a fraction of the discriminator that makes "
                f"whole sizes, such as 0.25; got {width!r}, of {name}={sizes[name]}."
            )
    return scaled
