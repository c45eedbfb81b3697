"""A bidirectional LSTM over words (Clark's thesis, 4.2.1)."""

import keras
from keras import ops

from keras_corrupt.cross_view.bilstm.lstm import (
    lstm_flops,
    lstm_outputs,
    lstm_parameters,
    lstm_weights,
)
from keras_corrupt.cross_view.bilstm.word_embeddings import WordEmbeddings
from keras_corrupt.cross_view.noise import with_noise
from keras_corrupt.devices.hashed_random import uniform
from keras_corrupt.devices.replicas import SeedGenerator


class BidirectionalLSTM(keras.layers.Layer):
    """An LSTM with a projection in each direction, both in one loop.

    With the projection (Sak et al., 2014) the output, and what the next word's gates
    read of it, is a linear map of the hidden state.

    Args:
        hidden_size: Width of the cell.
        projection_size: Width of the output.
    """

    def __init__(self, hidden_size, projection_size, **kwargs):
        super().__init__(**kwargs)
        self.hidden_size = hidden_size
        self.projection_size = projection_size

    def build(self, input_shape):
        sizes = input_shape[-1], self.hidden_size, self.projection_size
        #: A weight for each direction of each kind: forward, backward.
        self.kernels, self.recurrent_kernels, self.biases, self.projections = (
            [self.add_weight(shape, initializer, name=name) for _ in range(2)]
            for name, (shape, initializer) in lstm_weights(*sizes).items()
        )

    def call(self, x, padding_mask):
        """Reads words from both ends; padding follows the words and changes nothing.

        Args:
            x: `[batch, length, size]`.
            padding_mask: `[batch, length]`, 1 for words, 0 for padding.

        Returns:
            Forward and backward states, each `[batch, length, projection]`.
        """
        x = ops.stack([x, ops.flip(x, axis=1)])  # [2, batch, length, size]
        kernel, recurrent, bias, projection = (
            ops.stack([ops.cast(w, self.compute_dtype) for w in pair])
            for pair in (
                *(self.kernels, self.recurrent_kernels),
                *(self.biases, self.projections),
            )
        )
        gates = ops.einsum("dbti,dig->tdbg", x, kernel) + bias[:, None, :]
        mask = ops.cast(padding_mask, "bool")
        mask = ops.transpose(ops.stack([mask, ops.flip(mask, axis=1)]), (2, 0, 1))
        # Closed gates empty the state: from the right, padding comes before the words.
        gates = ops.where(mask[..., None], gates, -1e4)  # [length, 2, batch, gates]
        batch = ops.shape(x)[1]
        empty = (
            ops.zeros((2, batch, self.projection_size), self.compute_dtype),
            ops.zeros((2, batch, self.hidden_size), "float32"),
        )
        outputs = lstm_outputs(gates, empty, recurrent, projection)
        forward, backward = outputs[:, 0], ops.flip(outputs[:, 1], axis=0)
        return ops.transpose(forward, (1, 0, 2)), ops.transpose(backward, (1, 0, 2))


class RowDropout(keras.layers.Layer):
    """Dropout at a rate that each row of the batch has for itself."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.seed_generator = SeedGenerator()
        self.built = True

    def call(self, x, rates):
        """Returns `x`, `[batch, ..., size]`, at the rates `[batch]`."""
        rates = ops.reshape(rates, (-1, *[1] * (len(x.shape) - 1)))
        rates = ops.cast(rates, "float32")
        stays = uniform(ops.shape(x), self.seed_generator) >= rates
        return ops.where(stays, x / ops.cast(1.0 - rates, x.dtype), 0.0)


@keras.saving.register_keras_serializable(package="keras_corrupt")
class BiLSTMEncoder(keras.layers.Layer):
    """Word embeddings and bidirectional LSTMs, whose directions stay apart.

    Args:
        vocabulary_size: See `WordEmbeddings`; so for all down to `num_filters`.
        num_characters: See there.
        character_size: See there.
        filter_widths: See there.
        num_filters: See there.
        hidden_sizes: Widths of the LSTMs' cells, from the first layer on.
        projection_size: Width of their outputs, in each direction.

    Example:

    >>> import numpy as np
    >>> encoder = BiLSTMEncoder(9, 9, hidden_sizes=(4,), projection_size=3)
    >>> [(forward, backward)] = encoder({
    ...     "word_ids": np.array([[1, 2]]),
    ...     "character_ids": np.ones((1, 2, 5), "int32"),
    ...     "padding_mask": np.array([[1, 1]])})
    >>> tuple(forward.shape)
    (1, 2, 3)
    """

    def __init__(
        self,
        vocabulary_size,
        num_characters,
        character_size=50,
        filter_widths=(2, 3, 4),
        num_filters=100,
        hidden_sizes=(1024, 512),
        projection_size=512,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.autocast = False  # ids
        self.sizes = {
            "vocabulary_size": vocabulary_size,
            "num_characters": num_characters,
            "character_size": character_size,
            "filter_widths": list(filter_widths),
            "num_filters": num_filters,
            "hidden_sizes": list(hidden_sizes),
            "projection_size": projection_size,
        }
        self.projection_size = projection_size
        self.embeddings = WordEmbeddings(
            vocabulary_size,
            num_characters,
            character_size,
            filter_widths,
            num_filters,
            dtype=self.dtype_policy,
            name="embeddings",
        )
        self.lstms = [
            BidirectionalLSTM(
                size, projection_size, dtype=self.dtype_policy, name=f"lstm_{i}"
            )
            for i, size in enumerate(hidden_sizes)
        ]
        self.dropout = RowDropout(dtype=self.dtype_policy, name="dropout")

    def build(self, input_shape=None):
        self.embeddings.build()
        size = self.embeddings.size
        for lstm in self.lstms:
            lstm.build((None, None, size))
            size = 2 * self.projection_size

    def call(self, inputs, dropout_rates=None, noise=None):
        """Encodes sentences.

        Args:
            inputs: Dict of int32 `word_ids` `[batch, length]`, `character_ids`
                `[batch, length, characters]` and `padding_mask` `[batch, length]`.
            dropout_rates: float32 `[batch]`, the rate at which each sentence loses
                parts of its words' vectors and of the LSTMs' outputs; `None` for none.
            noise: Noise of the words' vectors, `[batch, length, size]`, in units of
                their standard deviations: see `noise.with_noise`.

        Returns:
            For each layer its forward and its backward states, each
            `[batch, length, projection]`.
        """

        def dropped(x):
            return x if dropout_rates is None else self.dropout(x, dropout_rates)

        x = self.embeddings(inputs["word_ids"], inputs["character_ids"])
        if noise is not None:
            x = with_noise(x, noise, inputs["padding_mask"])
        x, layers = dropped(x), []
        for lstm in self.lstms:
            layers.append(
                [dropped(states) for states in lstm(x, inputs["padding_mask"])]
            )
            x = ops.concatenate(layers[-1], axis=-1)
        return layers

    def flops(self, length, characters):
        """Counts a sentence, forward; `encoders/cost.py` has the rules.

        But looking up an embedding costs nothing here, as in practice: a one-hot vector
        times the table of all words would be most of the cost.

        Args:
            length: Int. Words in the sentence.
            characters: Int. Characters in each word, padding included.
        """
        lstms = sum(2 * lstm_flops(*sizes) for sizes in lstm_sizes(**self.sizes))
        return length * (self.embeddings.flops(characters) + lstms)

    @staticmethod
    def parameters(sizes):
        """Counts the weights of an encoder of all these sizes.

        >>> BiLSTMEncoder.parameters({"vocabulary_size": 9, "num_characters": 9,
        ...     "character_size": 5, "filter_widths": [2], "num_filters": 2,
        ...     "hidden_sizes": [4], "projection_size": 3})
        301
        """
        filters, characters = sizes["num_filters"], sizes["character_size"]
        total = sizes["vocabulary_size"] * filters * len(sizes["filter_widths"])
        total += sizes["num_characters"] * characters
        for width in sizes["filter_widths"]:
            total += width * characters * filters + filters
        return total + sum(2 * lstm_parameters(*each) for each in lstm_sizes(**sizes))

    def get_config(self):
        return {**super().get_config(), **self.sizes}


def lstm_sizes(filter_widths, num_filters, hidden_sizes, projection_size, **others):
    """Yields what `lstm_weights` asks for, for each layer."""
    width = num_filters * len(filter_widths)
    for hidden in hidden_sizes:
        yield width, hidden, projection_size
        width = 2 * projection_size
