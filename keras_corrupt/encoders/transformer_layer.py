"""A layer of BERT's Transformer: post-layer-norm."""

import keras

from keras_corrupt.devices.replicas import Dropout
from keras_corrupt.encoders.attention import SelfAttention
from keras_corrupt.encoders.cost import DROPOUT_FLOPS, LAYER_NORM_FLOPS
from keras_corrupt.encoders.dense import Dense, gelu
from keras_corrupt.encoders.embeddings import initializer
from keras_corrupt.kernels import active, plain

#: What a training step can compute again in its backward pass.
REMAT = ("none", "attention", "layer")


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
        remat: See `TransformerEncoder`.
        layer_norm_epsilon: See `TransformerEncoder`.
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
        remat="none",
        layer_norm_epsilon=1e-12,
        **kwargs,
    ):
        super().__init__(**kwargs)

        def norm(name):
            return keras.layers.LayerNormalization(
                epsilon=layer_norm_epsilon, dtype=self.dtype_policy, name=name
            )

        def dense(units, name, activation=None, remat=False):
            return Dense(
                units,
                activation,
                remat=remat,
                kernel_initializer=initializer(initializer_range),
                dtype=self.dtype_policy,
                name=name,
            )

        self.hidden_size = hidden_size
        self.intermediate_size = intermediate_size
        self.approximate_gelu = approximate_gelu
        self.remat = remat
        self.attention = SelfAttention(
            hidden_size,
            num_heads,
            attention_dropout,
            initializer_range,
            remat=remat == "attention",
            dtype=self.dtype_policy,
            name="attention",
        )
        self.attention_norm = norm("attention_norm")
        self.intermediate = dense(
            intermediate_size,
            "intermediate",
            gelu(approximate_gelu),
            remat=remat == "attention",
        )
        self.feedforward_output = dense(hidden_size, "feedforward_output")
        self.feedforward_norm = norm("feedforward_norm")
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

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

    def compute_output_shape(self, input_shape):
        return input_shape

    def call(self, x, mask, bias=None, training=False):
        """Returns `[batch, length, hidden]`; the arguments are `SelfAttention`'s."""
        if active() is not plain and self._is_known():
            return active().transformer_layer(self, x, mask, bias, training)
        seeds = [
            dropout.draw(training)
            for dropout in (self.attention.dropout, self.dropout, self.dropout)
        ]

        def layer(x, bias=None):
            attended = self.attention(x, mask, bias, training=training, seed=seeds[0])
            x = self._add(x, attended, self.attention_norm, training, seeds[1])
            fed = self.intermediate(x, training=training)
            fed = self.feedforward_output(fed)
            return self._add(x, fed, self.feedforward_norm, training, seeds[2])

        if training and self.remat == "layer":
            layer = keras.remat(layer)
        biases = () if bias is None else (bias,)
        return layer(x, *biases)

    def _add(self, x, change, norm, training, seed):
        """Adds a sub-layer's output to its input, and normalises the sum."""

        def add(x, change):
            return norm(x + self.dropout(change, training=training, seed=seed))

        if training and self.remat == "attention":
            add = keras.remat(add)
        return add(x, change)

    def _is_known(self):
        """Returns whether all is as the fused kernels compute it: no part is another.

        A user may have put a layer of another class in a part's place, or quantized it.
        """
        layers = [self, *self._flatten_layers(include_self=False)]
        return all(
            type(layer) in KNOWN and not layer.quantization_mode for layer in layers
        )

    # === What it costs ===

    def flops(self, length, has_bias=False, training=False):
        """Counts one sequence, forward; the arguments are `SelfAttention.flops`'s."""
        attention = self.attention.flops(length, has_bias, training)
        feed_forward = self.intermediate.flops() + self.feedforward_output.flops()
        added = 1 + LAYER_NORM_FLOPS + DROPOUT_FLOPS * training  # 1: residual.
        return attention + length * (feed_forward + 2 * added * self.hidden_size)

    def activation_bytes(self, batch_size, length, number_bytes):
        """Counts what the layer keeps for the backward pass.

        Args:
            batch_size: Int. Sequences.
            length: Int. Tokens of a sequence.
            number_bytes: Int. Bytes of a number: 4, or 2 in mixed precision.

        Returns:
            Int. Bytes.
        """
        if self.remat == "layer":  # its input
            return batch_size * length * self.hidden_size * number_bytes
        return self._kept_bytes(batch_size, length, number_bytes)

    def backward_bytes(self, batch_size, length, number_bytes):
        """Counts what going back through the layer makes; see `activation_bytes`."""
        widest = max(self.intermediate_size, self.attention.num_heads * length)
        # Half a layer: what is made again, its gradient, its input's.
        half = 3 * batch_size * length * widest * number_bytes
        if self.remat == "layer":  # and, before, through the whole layer again
            half += self._kept_bytes(batch_size, length, number_bytes)
        return half

    def _kept_bytes(self, batch_size, length, number_bytes):
        # Query, key, value; the heads' output; two norms' outputs and normalised
        # inputs; and what gelu is taken of.
        numbers = 8 * self.hidden_size + self.intermediate_size
        if self.remat != "attention":  # The attention weights before dropout.
            numbers += length * self.attention.num_heads
        return batch_size * length * numbers * number_bytes


#: Classes of a layer and of its parts that the fused kernels compute.
KNOWN = (
    *(TransformerLayer, SelfAttention, Dense),
    *(Dropout, keras.layers.LayerNormalization),
)
