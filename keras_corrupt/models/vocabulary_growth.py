"""A model whose vocabulary grows: embeddings and biases of the new pieces.

A new piece starts as the mean of the pieces that its text was cut into before, so that
the grown model reads a text nearly as the old one did.
"""

import keras
import numpy as np

from keras_corrupt.models.named_variables import named_weights
from keras_corrupt.models.overrides import merge
from keras_corrupt.tokenizers.growth import extends, old_pieces


def grown(model, tokenizer):
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
    parts = old_pieces(model.tokenizer, tokenizer)
    config = model.get_config()
    size = {"vocabulary_size": model.vocabulary_size + len(parts)}
    networks = {
        name: size
        for name in type(model).network_arguments
        if "vocabulary_size" in config.get(name, {})
    }
    new = type(model)(**merge(config, networks), tokenizer=tokenizer)
    new.left_out = model.left_out
    known = model.tokenizer.vocabulary_size
    for name, network in model.networks.items():
        targets = named_weights(new.networks[name])
        for weight, variable in named_weights(network).items():
            array = keras.ops.convert_to_numpy(variable)
            target = targets[weight]
            if array.shape != tuple(target.shape):
                array = _with_means(array, target.shape, known, parts)
            target.assign(array)
    return new


def _with_means(array, shape, known, parts):
    """Inserts means of rows after the known ones, where the shape tells the axis."""
    (axis,) = (i for i, size in enumerate(shape) if size != array.shape[i])
    rows = np.moveaxis(array, axis, 0)
    means = np.stack([rows[ids].mean(axis=0) for ids in parts]).astype(array.dtype)
    rows = np.concatenate([rows[:known], means, rows[known:]])
    return np.moveaxis(rows, 0, axis)
