"""BERT's Transformer encoder: post-layer-norm, optionally factorised embeddings."""

import keras
from keras import ops

from keras_corrupt.devices.replicas import Dropout
from keras_corrupt.encoders.attention import SelfAttention
from keras_corrupt.encoders.embeddings import TextEmbeddings, initializer
from keras_corrupt.kernels import active, dropout_of


class TransformerLayer(keras.layers.Layer):
    """Self-attention and a feed-forward network, each with residual, then norm.

    Args:
        hidden_size: Width of the input and of the output.
        intermediate_size: Width inside the feed-forward network.
        num_heads: Number of attention heads.
        dropout: Dropout rate of both sub-layers' outputs.
        attention_dropout: Dropout rate of the attention probabilities.
        initializer_range: Standard deviation of the initial weights.
        approximate_gelu: Whether the activation is gelu's tanh approximation.
    """

    def __init__(
        self,
        hidden_size,
        intermediate_size,
        num_heads,
        dropout=0.1,
        attention_dropout=0.1,
        initializer_range=0.02,
        approximate_gelu=False,
        **kwargs,
    ):
        super().__init__(**kwargs)

        def norm(name):
            return keras.layers.LayerNormalization(
                epsilon=1e-12, dtype=self.dtype_policy, name=name
            )

        def dense(units, name):
            return keras.layers.Dense(
                units,
                kernel_initializer=initializer(initializer_range),
                dtype=self.dtype_policy,
                name=name,
            )

        self.hidden_size = hidden_size
        self.intermediate_size = intermediate_size
        self.approximate_gelu = approximate_gelu
        self.attention = SelfAttention(
            hidden_size,
            num_heads,
            attention_dropout,
            initializer_range,
            dtype=self.dtype_policy,
            name="attention",
        )
        self.attention_norm = norm("attention_norm")
        self.intermediate = dense(intermediate_size, "intermediate")
        self.feedforward_output = dense(hidden_size, "feedforward_output")
        self.feedforward_norm = norm("feedforward_norm")
        self.dropout = Dropout(dropout, dtype=self.dtype_policy)

    def build(self, input_shape=None):
        shape = (None, None, self.hidden_size)
        for layer in (
            self.attention,
            self.attention_norm,
            self.intermediate,
            self.feedforward_norm,
        ):
            layer.build(shape)
        self.feedforward_output.build((None, None, self.intermediate_size))

    def call(self, x, mask, bias=None, training=False):
        kernels = active()

        def residual_norm(x, y, dense, norm):
            bias, gamma, beta = map(
                ops.convert_to_tensor, (dense.bias, norm.gamma, norm.beta)
            )
            dropout = dropout_of(self.dropout, training)
            return kernels.residual_norm(
                x, y, bias, gamma, beta, norm.epsilon, *dropout
            )

        attended = self.attention(x, mask, bias, training=training)
        output_projection = self.attention.output_projection
        x = residual_norm(x, attended, output_projection, self.attention_norm)
        fed = kernels.bias_gelu_matmul(
            ops.matmul(x, self.intermediate.kernel),
            self.intermediate.bias,
            self.feedforward_output.kernel,
            self.approximate_gelu,
        )
        return residual_norm(x, fed, self.feedforward_output, self.feedforward_norm)


@keras.saving.register_keras_serializable(package="keras_corrupt")
class TransformerEncoder(keras.Model):
    """A bidirectional Transformer over token ids.

    With `embedding_size` unlike `hidden_size` a linear layer maps the embeddings to
    the hidden size, as ELECTRA-Small and every small generator do.

    The weights exist once the constructor returns. `embed`, `attention_mask` and
    `layers_` are there for objectives that run only some of the layers.

    Args:
        vocabulary_size: Number of token ids.
        num_layers: Number of Transformer layers.
        hidden_size: Width of the layers.
        intermediate_size: Width inside the feed-forward networks.
        num_heads: Number of attention heads; divides `hidden_size`.
        embedding_size: Width of the embeddings; `hidden_size` if not given.
        max_length: Number of positions, the longest sequence it can read.
        num_segments: Number of segment ids.
        dropout: Dropout rate of the embeddings and of the sub-layers.
        attention_dropout: Dropout rate of the attention probabilities.
        initializer_range: Standard deviation of the initial weights.
        approximate_gelu: Whether the activation is gelu's tanh approximation, as in
            KerasHub, and not gelu itself, as in the released ELECTRA and in Hugging
            Face.
        tied_to: Another encoder, some of whose parts are used instead of new ones:
            the variables are the same ones, not copies.
        tied_parts: Which: parts of `TextEmbeddings`, and `projection`, from the
            embedding size to the hidden size.
        tied_layers: How many of its layers, counted from the bottom.

    Example:

    >>> import numpy as np
    >>> from keras_corrupt.encoders import TransformerEncoder
    >>> encoder = TransformerEncoder(
    ...     vocabulary_size=100, num_layers=2, hidden_size=16,
    ...     intermediate_size=32, num_heads=2, max_length=8)
    >>> ids = np.array([[2, 7, 9, 3, 0]], "int32")
    >>> hidden = encoder({"token_ids": ids, "segment_ids": 0 * ids,
    ...                   "padding_mask": (ids != 0).astype("int32")})
    >>> tuple(hidden.shape)
    (1, 5, 16)
    """

    def __init__(
        self,
        vocabulary_size,
        num_layers,
        hidden_size,
        intermediate_size,
        num_heads,
        embedding_size=None,
        max_length=512,
        num_segments=2,
        dropout=0.1,
        attention_dropout=0.1,
        initializer_range=0.02,
        approximate_gelu=False,
        tied_to=None,
        tied_parts=("token", "position"),
        tied_layers=0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if hidden_size % num_heads:
            raise ValueError(
                f"`num_heads` must divide `hidden_size`; got num_heads={num_heads}, "
                f"hidden_size={hidden_size}."
            )
        available = min(num_layers, tied_to.num_layers) if tied_to is not None else 0
        if not 0 <= tied_layers <= available:
            raise ValueError(
                f"`tied_layers` must be from 0 to {available}, the layers that this "
                f"encoder and `tied_to` both have; got {tied_layers}."
            )
        if tied_layers and tied_to.hidden_size != hidden_size:
            raise ValueError(
                "`tied_layers` are of one width; got encoders of hidden_size="
                f"{hidden_size} and {tied_to.hidden_size}."
            )
        embedding_size = embedding_size or hidden_size

        # === Layers ===
        self.embeddings = TextEmbeddings(
            vocabulary_size,
            embedding_size,
            max_length,
            num_segments,
            dropout,
            initializer_range,
            tied_to=tied_to.embeddings if tied_to is not None else None,
            tied_parts=tied_parts,
            dtype=self.dtype_policy,
            name="embeddings",
        )
        self.embedding_projection = None
        if tied_to is not None and "projection" in tied_parts:
            self.embedding_projection = tied_to.embedding_projection
        elif embedding_size != hidden_size:
            self.embedding_projection = keras.layers.Dense(
                hidden_size,
                kernel_initializer=initializer(initializer_range),
                dtype=self.dtype_policy,
                name="embedding_projection",
            )
        tied = tied_to.layers_[:tied_layers] if tied_layers else []
        self.layers_ = tied + [
            TransformerLayer(
                hidden_size,
                intermediate_size,
                num_heads,
                dropout,
                attention_dropout,
                initializer_range,
                approximate_gelu,
                dtype=self.dtype_policy,
                name=f"layer_{i}",
            )
            for i in range(tied_layers, num_layers)
        ]

        # === Config ===
        self.vocabulary_size = vocabulary_size
        self.num_layers = num_layers
        self.hidden_size = hidden_size
        self.intermediate_size = intermediate_size
        self.num_heads = num_heads
        self.embedding_size = embedding_size
        self.max_length = max_length
        self.num_segments = num_segments
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.initializer_range = initializer_range
        self.approximate_gelu = approximate_gelu

        self.build()

    def build(self, input_shape=None):
        self.embeddings.build()
        projection = self.embedding_projection
        if projection is not None and not projection.built:
            projection.build((None, None, self.embedding_size))
        for layer in self.layers_:
            if not layer.built:
                layer.build()
        self.built = True

    def call(self, inputs, training=False):
        """Encodes a batch.

        Args:
            inputs: A dict of int32 `[batch, length]` arrays: `token_ids`,
                `segment_ids`, `padding_mask` (1 for tokens, 0 for padding).
            training: Whether dropout is active.

        Returns:
            `[batch, length, hidden_size]`, the last layer's output.
        """
        mask = self.attention_mask(inputs)
        x = self.embed(inputs, training=training)
        for layer in self.layers_:
            x = layer(x, mask, training=training)
        return x

    def embed(self, inputs, training=False):
        """Returns the first layer's input, `[batch, length, hidden_size]`."""
        length = inputs["token_ids"].shape[1]
        if length is not None and length > self.max_length:
            raise ValueError(
                f"The encoder has `max_length={self.max_length}` positions, but "
                f"`token_ids` has length {length}. Cut the sequences, or make an "
                "encoder with a larger `max_length`."
            )
        x = self.embeddings(
            inputs["token_ids"], inputs["segment_ids"], training=training
        )
        dense = self.embedding_projection
        if dense is None:
            return x
        # Not by the layer's `call`: in bfloat16 it would also add up the gradient of
        # the bias, and most of some thousand terms would be lost.
        projected = ops.cast(ops.matmul(x, ops.cast(dense.kernel, x.dtype)), "float32")
        return ops.cast(projected + ops.cast(dense.bias, "float32"), x.dtype)

    def attention_mask(self, inputs):
        """Returns a boolean `[batch, 1, 1, length]`: every query sees every token."""
        return ops.cast(inputs["padding_mask"], "bool")[:, None, None, :]

    def get_config(self):
        return {
            "vocabulary_size": self.vocabulary_size,
            "num_layers": self.num_layers,
            "hidden_size": self.hidden_size,
            "intermediate_size": self.intermediate_size,
            "num_heads": self.num_heads,
            "embedding_size": self.embedding_size,
            "max_length": self.max_length,
            "num_segments": self.num_segments,
            "dropout": self.dropout,
            "attention_dropout": self.attention_dropout,
            "initializer_range": self.initializer_range,
            "approximate_gelu": self.approximate_gelu,
        }
