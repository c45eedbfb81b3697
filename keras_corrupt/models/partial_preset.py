"""A model from a preset that does not have all of it.

Published discriminators come without their generator, and an encoder that one system
pretrained can start another. What is not there is new.
"""

from keras_corrupt.models import longer_sequences, preset_directory
from keras_corrupt.models.named_variables import named_weights
from keras_corrupt.models.overrides import merge, with_global_policy
from keras_corrupt.models.preset_sizes import SIZES, encoder_sizes
from keras_corrupt.models.pretrainer import Pretrainer
from keras_corrupt.models.trained_presets import directory_of
from keras_corrupt.objectives.one_state import warn_of_one_state


def described(directory, cls):
    """Reads what a preset says of itself.

    Args:
        directory: The preset.
        cls: The class of the model that is to start from it.

    Returns:
        The preset's own class, the arguments of its main encoder, and its tokenizer or
        `None`.

    Raises:
        ValueError: It is no preset of a pretraining model.
    """
    found = cls
    if preset_directory.recovered(directory).is_dir():
        found = preset_directory.find_model_class(directory, Pretrainer)
    config, tokenizer = preset_directory.read(directory, found)
    main = next(iter(found.network_arguments))
    if not isinstance(config.get(main), dict):
        raise ValueError(
            f"{directory} cannot be loaded: its config.json does not describe "
            f"{found.__name__}'s {main}. Give a directory that save_to_preset wrote."
        )
    return found, config[main], tokenizer


def check(preset, cls, size, overrides):
    """Checks that a model can start from a preset, before long work is done.

    Args:
        preset: See `load`.
        cls: See `load`.
        size: See `load`.
        overrides: See `load`.

    Returns:
        The preset's own class.

    Raises:
        ValueError: It is no preset, has no encoder, or one of other sizes than the
            overrides ask for, or `size` is none.
    """
    found, encoder, _ = described(directory_of(preset), cls)
    check_overrides(preset, encoder, cls, overrides)
    if found is cls:
        return found
    if size not in cls.presets:
        raise ValueError(
            f"--init_from {preset} has an encoder of {found.__name__}. Say with "
            f"--preset what else {cls.__name__} has, one of {', '.join(cls.presets)}; "
            f"got {size}."
        )
    smallest = "tiny" if "tiny" in found.presets else next(iter(found.presets))
    _ = found.from_preset(smallest, name="trial").encoder  # raises where there is none
    return found


def check_overrides(preset, encoder, cls, overrides):
    """Raises a `ValueError` if a main encoder is to be of other sizes than a preset's.

    Args:
        preset: See `load`.
        encoder: Dict. Constructor arguments of the preset's main encoder.
        cls: See `load`.
        overrides: See `load`.
    """
    main = next(iter(cls.network_arguments))
    trained = encoder_sizes(encoder)
    for name, value in overrides.get(main, {}).items():
        longer = name == "max_length" and value > trained[name]
        if name in SIZES and value != trained[name] and not longer:
            raise ValueError(
                f"--{main}.{name} {value}: the weights of --init_from {preset} are of "
                f"{name}={trained[name]}. Leave it out"
                + (", or raise it." if name == "max_length" else ".")
            )


def load(preset, cls, size, tokenizer=None, **overrides):
    """Makes a model with all that a preset has for it.

    Of a preset of the same class each network is taken that is there, and the sizes of
    those that are not. Of another class's the encoder is taken, and all else is that of
    a named architecture, new.

    Args:
        preset: A directory, or the name of a trained preset.
        cls: The `Pretrainer` class.
        size: A key of its `presets`.
        tokenizer: The tokenizer of a preset that has none.
        overrides: See `Pretrainer.from_preset`.

    Raises:
        ValueError: It is no preset, has no encoder, or does not fit.
    """
    directory = directory_of(preset)
    found = check(preset, cls, size, overrides)
    config, saved = preset_directory.read(directory, found)
    config, tokenizer = with_global_policy(config), saved or tokenizer
    if found is cls:
        model = longer_sequences.load(
            directory, cls, config, overrides, tokenizer, partial=True
        )
        warn_of_one_state(model, preset)
        return model
    main, own_main = (next(iter(each.network_arguments)) for each in (cls, found))
    length = overrides.get(main, {}).get("max_length")
    longer = {own_main: {"max_length": length}} if length else {}
    start = longer_sequences.load(
        directory, found, config, longer, tokenizer, partial=True
    )
    warn_of_one_state(start, preset)
    encoder = merge({main: start.encoder.architecture}, overrides)
    model = cls.from_preset(size, tokenizer=tokenizer, **encoder)
    weights = named_weights(start.encoder)
    for name, variable in named_weights(model.encoder).items():
        variable.assign(weights[name])
    return model
