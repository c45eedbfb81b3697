"""Input embeddings of a Transformer encoder."""

import keras
from keras import ops

from keras_corrupt.devices.replicas import Dropout
from keras_corrupt.encoders.cost import DROPOUT_FLOPS, norm_flops
from keras_corrupt.encoders.input_limits import UNLIMITED, InputLimits


def initializer(stddev):
    """Returns BERT's initializer: normal, cut off at two standard deviations."""
    return keras.initializers.TruncatedNormal(stddev=stddev)


def layer_norm(name, epsilon, use_bias, dtype):
    """Returns an encoder's `keras.layers.LayerNormalization`, with an offset or not."""
    return keras.layers.LayerNormalization(
        epsilon=epsilon, center=use_bias, dtype=dtype, name=name
    )


def firsts(text_ids):
    """Returns where each token's text begins, int32 `[batch, length]`.

    Args:
        text_ids: int32 `[batch, length]`, the number of a token's text in its row.

    >>> import numpy as np
    >>> np.array(firsts(np.array([[1, 1, 2, 2, 0]]))).tolist()
    [[0, 0, 2, 2, 4]]
    """
    same = ops.equal(text_ids[:, :, None], text_ids[:, None, :])
    return ops.cast(ops.argmax(ops.cast(same, "int32"), axis=-1), "int32")


class DisentangledEmbedding(keras.layers.Layer):
    """The sum of another's table, constant to gradients, and a table of differences.

    Gradient-disentangled embedding sharing (He et al., 2021, DeBERTaV3, section 3.3):
    the differences, zero at first, learn what their network needs, and the table that
    both networks share learns from the other one alone.

    Args:
        base: A `keras.layers.Embedding`, the other network's.
    """

    def __init__(self, base, **kwargs):
        super().__init__(**kwargs)
        self.base = base
        self.difference = keras.layers.Embedding(
            base.input_dim,
            base.output_dim,
            embeddings_initializer="zeros",
            dtype=self.dtype_policy,
            name="difference",
        )

    def build(self, input_shape=None):
        for table in (self.base, self.difference):
            if not table.built:
                table.build()

    def compute_output_shape(self, input_shape):
        return (*input_shape, self.base.output_dim)

    def call(self, token_ids):
        """Returns float `[..., embedding]`, of int `[...]`."""
        return ops.stop_gradient(self.base(token_ids)) + self.difference(token_ids)


class TextEmbeddings(keras.layers.Layer):
    """Sum of token, position and segment embeddings, normalised, then dropped out.

    Without a table of positions, or of segments, the sum has none of them.

    ELECTRA ties some of these between its generator and its discriminator (Clark's
    thesis, 5.3.1), so another instance's parts can be taken instead of new ones.

    Args:
        vocabulary_size: Number of token ids.
        embedding_size: Width of the embeddings.
        max_length: Number of positions.
        num_segments: Number of segment ids; 0 for no table, where all ids are read.
        dropout: Dropout rate of the result.
        initializer_range: Standard deviation of the initial weights.
        tied_to: Another `TextEmbeddings` whose `tied_parts` this one uses. The
            variables are the same ones, not copies.
        tied_parts: Names among `token`, `position`, `segment` and `norm`.
        disentangled: Whether tied tables are each a `DisentangledEmbedding` on the
            other's, and not the other's itself.
        layer_norm_epsilon: Added to the variance by which the sum is normalised.
        has_positions: Whether there is a table of positions.
        use_bias: Whether the norm has an offset.
    """

    def __init__(
        self,
        vocabulary_size,
        embedding_size,
        max_length,
        num_segments=2,
        dropout=0.1,
        initializer_range=0.02,
        tied_to=None,
        tied_parts=("token", "position"),
        disentangled=False,
        layer_norm_epsilon=1e-12,
        has_positions=True,
        use_bias=True,
        **kwargs,
    ):
        super().__init__(**kwargs)

        def embedding(rows, name):
            return keras.layers.Embedding(
                rows,
                embedding_size,
                embeddings_initializer=initializer(initializer_range),
                dtype=self.dtype_policy,
                name=name,
            )

        def part(name, make):
            tied = tied_to is not None and name in tied_parts
            theirs = getattr(tied_to, name) if tied else None
            if theirs is None:  # `tied_to` may have no such table
                return make()
            if disentangled and isinstance(theirs, keras.layers.Embedding):
                return DisentangledEmbedding(theirs, dtype=self.dtype_policy, name=name)
            return theirs

        def table(name, rows):
            return part(name, lambda: embedding(rows, name)) if rows else None

        self.embedding_size = embedding_size
        self.num_segments = num_segments
        self.input_limits = InputLimits(
            vocabulary_size, num_segments or UNLIMITED.num_segments, max_length
        )
        self.token = table("token", vocabulary_size)
        self.position = table("position", max_length if has_positions else 0)
        self.segment = table("segment", num_segments)
        self.norm = part(
            "norm",
            lambda: layer_norm("norm", layer_norm_epsilon, use_bias, self.dtype_policy),
        )
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, input_shape=None):
        for table in self.tables:
            if not table.built:
                table.build()
        if not self.norm.built:
            self.norm.build((None, None, self.embedding_size))

    def compute_output_shape(self, input_shape):
        return (*input_shape, self.embedding_size)

    def call(self, token_ids, segment_ids, text_ids=None, training=False):
        summed = self.token(token_ids)  # [batch, length, embedding]
        if self.position is not None:
            positions = ops.arange(ops.shape(token_ids)[1])
            if text_ids is not None:
                positions = positions - firsts(text_ids)
            summed = summed + self.position(positions)
        if self.segment is not None:
            summed = summed + self.segment(segment_ids)
        return self.dropout(self.norm(summed), training=training)

    @property
    def tables(self):
        """The tables that there are, a list."""
        return [t for t in (self.token, self.position, self.segment) if t is not None]

    # === What it costs ===

    def flops(self, length, training=False):
        """Counts one sequence, forward: look-ups, their sum, layer norm.

        Position look-ups are over the `length` rows in use. The differences in
        disentangled tables are left out.
        """
        positions = 0 if self.position is None else length
        rows = self.input_limits.vocabulary_size + positions + self.num_segments
        number = 2 * rows + len(self.tables) - 1
        number += norm_flops(self.norm) + DROPOUT_FLOPS * training
        return length * self.embedding_size * number

    def activation_bytes(self, batch_size, length):
        """Counts the look-ups, their sum, its norm and dropout, in float32."""
        tables = len(self.tables)
        arrays = tables + (tables > 1) + 2
        return batch_size * length * self.embedding_size * arrays * 4
