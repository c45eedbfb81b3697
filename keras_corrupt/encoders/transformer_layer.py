"""A layer of BERT's Transformer: post-layer-norm."""

import keras

from keras_corrupt.devices.guests import replaceable
from keras_corrupt.devices.replicas import Dropout
from keras_corrupt.encoders.attention import SelfAttention
from keras_corrupt.encoders.cost import DROPOUT_FLOPS, norm_flops
from keras_corrupt.encoders.dense import Dense
from keras_corrupt.encoders.embeddings import initializer, layer_norm
from keras_corrupt.encoders.feed_forward import FEED_FORWARDS
from keras_corrupt.encoders.local_attention import LocalSelfAttention

#: What a training step can compute again in its backward pass.
REMAT = ("none", "attention", "layer")
#: Classes of the parts of BERT's layer.
BERT_PARTS = (SelfAttention, Dense, Dropout, keras.layers.LayerNormalization)


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
        feed_forward: See `TransformerEncoder`.
        use_bias: See `TransformerEncoder`.
        rotary_theta: `None`, or the base of rotary positions.
        window: `None`, or the tokens that a `LocalSelfAttention` sees.
        has_attention_norm: Whether attention has a norm: not in the first layer of a
            pre-norm encoder, whose input is normalised.
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
        feed_forward="gelu",
        use_bias=True,
        rotary_theta=None,
        window=None,
        has_attention_norm=True,
        **kwargs,
    ):
        super().__init__(**kwargs)

        def norm(name):
            return layer_norm(name, layer_norm_epsilon, use_bias, self.dtype_policy)

        def dense(units, name, activation=None, remat=False, kind=Dense):
            return kind(
                units,
                activation,
                remat=remat,
                use_bias=use_bias,
                kernel_initializer=initializer(initializer_range),
                dtype=self.dtype_policy,
                name=name,
            )

        inner, activation = FEED_FORWARDS[feed_forward]
        self.hidden_size = hidden_size
        self.intermediate_size = intermediate_size
        self.approximate_gelu = approximate_gelu
        self.remat = remat
        attention = {
            "hidden_size": hidden_size,
            "num_heads": num_heads,
            "dropout": attention_dropout,
            "initializer_range": initializer_range,
            "remat": remat == "attention",
            "use_bias": use_bias,
            "rotary_theta": rotary_theta,
            "dtype": self.dtype_policy,
            "name": "attention",
        }
        self.attention = (
            SelfAttention(**attention)
            if window is None
            else LocalSelfAttention(window, **attention)
        )
        self.attention_norm = (
            norm("attention_norm")
            if has_attention_norm
            else keras.layers.Identity(dtype=self.dtype_policy, name="attention_norm")
        )
        self.intermediate = dense(
            intermediate_size,
            "intermediate",
            activation(approximate_gelu),
            remat=remat == "attention",
            kind=inner,
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

    @replaceable
    def call(self, x, mask, bias=None, training=False):
        """Returns `[batch, length, hidden]`; the arguments are `SelfAttention`'s."""
        seeds = [
            dropout.draw(training)
            for dropout in (self.attention.dropout, self.dropout, self.dropout)
        ]

        def feed(x):
            return self.feedforward_output(self.intermediate(x, training=training))

        def layer(x, bias=None):
            def attend(x):
                return self.attention(x, mask, bias, training=training, seed=seeds[0])

            x = self.sublayer(x, attend, self.attention_norm, training, seeds[1])
            return self.sublayer(x, feed, self.feedforward_norm, training, seeds[2])

        if training and self.remat == "layer":
            layer = keras.remat(layer)
        biases = () if bias is None else (bias,)
        return layer(x, *biases)

    def sublayer(self, x, compute, norm, training, seed):
        """Adds a sub-layer's output to its input, and normalises the sum.

        Args:
            x: The input.
            compute: Function of the input, the sub-layer.
            norm: The sub-layer's norm.
            training: Whether dropout is active.
            seed: The dropout's, what `Dropout.draw` returned.
        """

        def add(x, change):
            return norm(x + self.dropout(change, training=training, seed=seed))

        return self.again(add, training)(x, compute(x))

    def again(self, function, training):
        """Returns a function, computed again in the backward pass if `remat` says so.

        Args:
            function: The computation between products with weights.
            training: Whether there is a backward pass.
        """
        if training and self.remat == "attention":
            return keras.remat(function)
        return function

    @property
    def norms(self):
        """The norms that there are, a list."""
        norms = self.attention_norm, self.feedforward_norm
        return [n for n in norms if isinstance(n, keras.layers.LayerNormalization)]

    @property
    def is_bert_layer(self):
        """Whether the layer and all parts are BERT's, which the CPU kernels compute.

        A user may have put a layer of another class in a part's place, or quantized it.
        """
        return all(
            type(part) in (TransformerLayer, *BERT_PARTS)
            and not part.quantization_mode
            and getattr(part, "use_bias", True)
            and getattr(part, "center", True)
            for part in self._flatten_layers()
        )

    # === What it costs ===

    def flops(self, length, has_bias=False, training=False):
        """Counts one sequence, forward; the arguments are `SelfAttention.flops`'s."""
        attention = self.attention.flops(length, has_bias, training)
        feed_forward = self.intermediate.flops() + self.feedforward_output.flops()
        added = 2 * (1 + DROPOUT_FLOPS * training)  # 1: residual.
        added += sum(map(norm_flops, self.norms))
        return attention + length * (feed_forward + added * self.hidden_size)

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
        # Half a layer: its output made again, the gradients of output and input.
        half = 3 * batch_size * length * widest * number_bytes
        if self.remat == "layer":  # and, before, through the whole layer again
            half += self._kept_bytes(batch_size, length, number_bytes)
        return half

    def _kept_bytes(self, batch_size, length, number_bytes):
        # Query, key, value; the heads' output; the norms' outputs and normalised
        # inputs; and what the activation is taken of.
        numbers = (4 + 2 * len(self.norms)) * self.hidden_size
        numbers += self.intermediate.kept_numbers
        if not self.is_bert_layer:
            # Operation by operation, the sub-layers' inputs and the norms' centred
            # inputs; query, key and value turned and transposed, and the transposed
            # context; and what the activation computes in between.
            numbers += (2 * len(self.norms) + 8) * self.hidden_size
            numbers += 2 * self.intermediate_size
        if self.remat != "attention":  # The attention weights before dropout.
            numbers += length * self.attention.num_heads
        return batch_size * length * numbers * number_bytes
