"""Models that read longer sequences than the preset that they start from.

New positions start as copies of the trained ones, over and over (Beltagy et al.,
"Longformer", 2020, section 5): so the places of neighbours differ as they did before.
"""

import keras
import numpy as np

from keras_corrupt.models import preset_directory
from keras_corrupt.models.named_variables import named_weights
from keras_corrupt.models.overrides import merge


def load(directory, cls, config, tokenizer, **options):
    """Makes a model of a preset, whose main encoder may have more positions.

    Args:
        directory: The preset.
        cls: The model's class.
        config: Its constructor's arguments. Where the main encoder's `max_length` is
            more than the preset's, all networks' becomes the same.
        tokenizer: The tokenizer.
        options: Those of `preset_directory.load`.

    Raises:
        ValueError: See `preset_directory.load`.
    """
    saved, _ = preset_directory.read(directory, cls)
    main = next(iter(cls.network_arguments))
    length = config[main]["max_length"]
    if length <= saved[main]["max_length"]:
        return preset_directory.load(directory, cls, config, tokenizer, **options)
    trained = {
        name: {"max_length": saved[name]["max_length"]}
        for name in cls.network_arguments
    }
    start = preset_directory.load(
        directory, cls, merge(config, trained), tokenizer, **options
    )
    longer = {name: {"max_length": length} for name in trained}
    model = cls(**merge(config, longer), tokenizer=tokenizer)
    for name, network in start.networks.items():
        targets = named_weights(model.networks[name])
        for weight, variable in named_weights(network).items():
            array = keras.ops.convert_to_numpy(variable)
            # `np.resize` repeats the rows; of other weights, the shape is the same.
            targets[weight].assign(np.resize(array, targets[weight].shape))
    return model
