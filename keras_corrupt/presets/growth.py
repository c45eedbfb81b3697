"""Models that know more than the one that they start from: positions, or pieces.

New positions start as copies of the trained ones, over and over (Beltagy et al.,
"Longformer", 2020, section 5): so the places of neighbours differ as they did before.
A new piece starts as the mean of the pieces that its text was cut into before, so that
the grown model reads a text nearly as the old one did.
"""

import keras
import numpy as np

from keras_corrupt.presets.named_variables import named_weights
from keras_corrupt.presets.overrides import merge
from keras_corrupt.presets.sizes import network_arguments
from keras_corrupt.tokenizers.growth import extends, old_pieces


def with_positions(model, number):
    """Returns a model like another one, all of whose networks read longer texts.

    Args:
        model: A `Pretrainer`. It stays as it is.
        number: Positions of each network.
    """
    sizes = {name: {"max_length": number} for name in network_arguments(type(model))}
    # `np.resize` repeats the rows.
    return _grown(model, sizes, model.tokenizer, np.resize)


def with_vocabulary(model, tokenizer):
    """Returns a model like another one, with a grown vocabulary.

    All that has a row for each token gets rows for the new ones: tables of embeddings,
    and biases of a softmax. What networks share they go on sharing.

    Args:
        model: A `Pretrainer` with a tokenizer. It stays as it is.
        tokenizer: The tokenizer, grown: `keras_corrupt.tokenizers.growth`.

    Returns:
        A new model of the same class, whose optimizer knows nothing yet.

    Raises:
        ValueError: The vocabulary is not the model's, grown.
    """
    if model.tokenizer is None or not extends(tokenizer, model.tokenizer):
        raise ValueError(
            "`tokenizer` must have the model's vocabulary first, and the new pieces "
            "after it: make it by `keras_corrupt.tokenizers.growth.grown`."
        )
    old_size = model.tokenizer.vocabulary_size
    parts = old_pieces(model.tokenizer, tokenizer)
    size, config = model.vocabulary_size + len(parts), model.get_config()
    sizes = {
        name: {"vocabulary_size": size}
        for name in network_arguments(type(model))
        if "vocabulary_size" in config.get(name, {})
    }

    def with_means(array, shape):
        """Inserts means of rows after the old ones; the shape tells the axis."""
        (axis,) = (i for i, size in enumerate(shape) if size != array.shape[i])
        rows = np.moveaxis(array, axis, 0)
        means = np.stack([rows[ids].mean(axis=0) for ids in parts]).astype(array.dtype)
        rows = np.concatenate([rows[:old_size], means, rows[old_size:]])
        return np.moveaxis(rows, 0, axis)

    return _grown(model, sizes, tokenizer, with_means)


def _grown(model, sizes, tokenizer, enlarged):
    """Returns a model of other sizes, with the weights of `model`.

    Args:
        model: The model.
        sizes: Arguments of the constructor to change.
        tokenizer: The new model's tokenizer.
        enlarged: Function of an array and of the shape that it gets.
    """
    new = type(model)(**merge(model.get_config(), sizes), tokenizer=tokenizer)
    new.untrained_networks = model.untrained_networks
    for name, network in model.networks.items():
        targets = named_weights(new.networks[name])
        for weight, variable in named_weights(network).items():
            array, target = keras.ops.convert_to_numpy(variable), targets[weight]
            if array.shape != tuple(target.shape):
                array = enlarged(array, tuple(target.shape))
            target.assign(array)
    return new
