"""Vectors of whole words: an embedding, and a convolution over the letters."""

import keras
from keras import ops

from keras_corrupt.encoders.cost import dense_flops


class WordEmbeddings(keras.layers.Layer):
    """The sum of a word's embedding and of what a CNN reads in its characters.

    Clark's thesis, 4.2.1 and table 4.1; the CNN is Ma and Hovy's (2016): filters
    of several widths over the characters' embeddings, ReLU, the maximum over positions.
    As the sum asks for, `num_filters * len(filter_widths)` is the word's size.

    Args:
        vocabulary_size: Number of word ids.
        num_characters: Number of character ids; 0 is padding.
        character_size: Width of the characters' embeddings.
        filter_widths: Characters that each kind of filter sees at once.
        num_filters: Filters of each width.
    """

    def __init__(
        self,
        vocabulary_size,
        num_characters,
        character_size=50,
        filter_widths=(2, 3, 4),
        num_filters=100,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.filter_widths = tuple(filter_widths)
        self.size = num_filters * len(self.filter_widths)
        self.word = keras.layers.Embedding(
            vocabulary_size, self.size, dtype=self.dtype_policy, name="word"
        )
        self.character = keras.layers.Embedding(
            num_characters, character_size, dtype=self.dtype_policy, name="character"
        )
        self.filters = [
            keras.layers.Conv1D(
                num_filters, width, dtype=self.dtype_policy, name=f"width_{width}"
            )
            for width in self.filter_widths
        ]

    def build(self, input_shape=None):
        self.word.build()
        self.character.build()
        for convolution in self.filters:
            convolution.build((None, None, self.character.output_dim))

    def call(self, word_ids, character_ids):
        """Returns `[batch, length, size]`.

        Args:
            word_ids: int32 `[batch, length]`.
            character_ids: int32 `[batch, length, characters]`.
        """
        return self.word(word_ids) + self.spelling(character_ids)

    def spelling(self, character_ids):
        """Returns what the CNN makes of each word, `[batch, length, size]`."""
        batch, length, _ = ops.shape(character_ids)
        width = character_ids.shape[-1]
        character_ids = ops.reshape(character_ids, (-1, width))
        real = ops.cast(character_ids != 0, self.compute_dtype)[..., None]
        characters = self.character(character_ids) * real  # [words, width, size]
        maxima = []
        for convolution, span in zip(self.filters, self.filter_widths, strict=True):
            # A window begins at each character, so that words of any length have one.
            padded = ops.pad(characters, [(0, 0), (0, span - 1), (0, 0)])
            windows = ops.relu(convolution(padded)) * real
            maxima.append(ops.max(windows, axis=1))  # at padding 0, the least of ReLU
        return ops.reshape(ops.concatenate(maxima, axis=-1), (batch, length, self.size))

    def flops(self, characters):
        """Counts one word of so many characters, forward; see `BiLSTMEncoder.flops`."""
        total = self.size  # the sum of embedding and spelling
        for convolution, span in zip(self.filters, self.filter_widths, strict=True):
            filters = convolution.filters
            window = dense_flops(span * self.character.output_dim, filters)
            total += characters * (window + 2 * filters)  # ReLU and maximum
        return total
