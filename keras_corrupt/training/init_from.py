"""A model from a preset that does not have all of it: `--init_from`.

Published discriminators come without their generator, and an encoder that one system
pretrained can start another. Networks that a preset lacks are new.
"""

from keras_corrupt.models import Pretrainer
from keras_corrupt.presets import Preset
from keras_corrupt.presets.named_variables import named_weights
from keras_corrupt.presets.overrides import merge
from keras_corrupt.presets.sizes import PARTS, SIZES, encoder_sizes


def check(preset, cls, size, overrides):
    """Opens a preset; checks that a model can start from it, before any long work.

    Args:
        preset: See `load`.
        cls: See `load`.
        size: See `load`.
        overrides: See `load`.

    Returns:
        The `Preset`.

    Raises:
        ValueError: It is no preset, has no encoder, or one of other sizes than the
            overrides ask for, or `size` is none.
    """
    opened = Preset.open(preset, Pretrainer)
    main, trained = next(iter(cls.network_arguments)), encoder_sizes(opened.encoder)
    for name, value in overrides.get(main, {}).items():
        longer = name == "max_length" and value > trained[name]
        if name in (*SIZES, *PARTS) and value != trained[name] and not longer:
            raise ValueError(
                f"--{main}.{name} {value}: the weights of --init_from {preset} are of "
                f"{name}={trained[name]}. Leave it out"
                + (", or raise it." if name == "max_length" else ".")
            )
    if opened.model_class is cls:
        return opened
    other = opened.model_class
    if size not in cls.presets:
        raise ValueError(
            f"--init_from {preset} has an encoder of {other.__name__}. Say with "
            f"--preset what else {cls.__name__} has, one of {', '.join(cls.presets)}; "
            f"got {size}."
        )
    if overrides.get("tied_embeddings") == "gradient_disentangled":
        raise ValueError(
            f"--tied_embeddings gradient_disentangled: --init_from {preset} is of "
            f"{other.__name__}, whose embeddings are not divided so. Leave it out, or "
            f"start from a preset of {cls.__name__}."
        )
    smallest = "tiny" if "tiny" in other.presets else next(iter(other.presets))
    _ = other.from_preset(smallest, name="trial").encoder  # raises where there is none
    return opened


def load(preset, cls, size, tokenizer=None, **overrides):
    """Makes a model with all that a preset has for it.

    From a preset of the same class each network is loaded that is there, and the others
    have the preset's sizes. From another class's preset only the encoder is loaded; the
    rest is a named architecture's, and new.

    Args:
        preset: A directory, or the name of a trained preset.
        cls: The `Pretrainer` class.
        size: A key of its `presets`.
        tokenizer: The tokenizer of a preset that has none.
        overrides: See `Pretrainer.from_preset`.

    Raises:
        ValueError: It is no preset, has no encoder, or does not fit.
    """
    opened = check(preset, cls, size, overrides)
    if opened.model_class is cls:
        return opened.load(tokenizer, partial=True, **overrides)
    main = next(iter(cls.network_arguments))
    length = overrides.get(main, {}).get("max_length")
    longer = {opened.main: {"max_length": length}} if length else {}
    start = opened.load(tokenizer, partial=True, **longer)
    encoder = merge({main: start.encoder.architecture}, overrides)
    model = cls.from_preset(size, tokenizer=start.tokenizer, **encoder)
    weights = named_weights(start.encoder)
    for name, variable in named_weights(model.encoder).items():
        variable.assign(weights[name])
    return model
