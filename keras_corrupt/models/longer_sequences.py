"""Models that read longer sequences than the preset that they start from.

New positions start as copies of the trained ones, over and over (Beltagy et al.,
"Longformer", 2020, section 5): so the places of neighbours differ as they did before.
"""

import keras
import numpy as np

from keras_corrupt.models import preset_directory
from keras_corrupt.models.named_variables import named_weights
from keras_corrupt.models.overrides import merge


def load(directory, cls, config, overrides, tokenizer, **options):
    """Makes a model of a preset, whose main encoder may have more positions.

    Args:
        directory: The preset.
        cls: The model's class.
        config: Its constructor's arguments, as the preset has them.
        overrides: Those to change. Where the main encoder's `max_length` is more than
            the preset's, that of all networks becomes the same.
        tokenizer: The tokenizer.
        options: Those of `preset_directory.load`.

    Raises:
        ValueError: See `preset_directory.load`.
    """
    changed = merge(config, overrides)
    if given := sorted({*overrides} - {"seed", "dtype", "name"}):
        names = ", ".join(given)
        options["remedy"] = (
            f"Leave out what does not fit, of {names}; or, if the preset is damaged, "
            "restore it from where it came."
        )
    main = next(iter(cls.network_arguments))
    length = overrides.get(main, {}).get("max_length", 0)
    trained = config.get(main, {}).get("max_length", length)
    if length <= trained:
        return preset_directory.load(directory, cls, changed, tokenizer, **options)

    def with_positions(number):
        lengths = {name: {"max_length": number} for name in cls.network_arguments}
        return merge(changed, lengths)

    start = preset_directory.load(
        directory, cls, with_positions(trained), tokenizer, **options
    )
    model = cls(**with_positions(length), tokenizer=tokenizer)
    model.left_out = start.left_out
    for name, network in start.networks.items():
        targets = named_weights(model.networks[name])
        for weight, variable in named_weights(network).items():
            array = keras.ops.convert_to_numpy(variable)
            # `np.resize` repeats the rows; of other weights, the shape is the same.
            targets[weight].assign(np.resize(array, targets[weight].shape))
    return model
