"""Multi-head self-attention (Vaswani et al., 2017, 3.2)."""

import keras
from keras import ops

from keras_corrupt.devices.replicas import Dropout
from keras_corrupt.encoders.embeddings import initializer
from keras_corrupt.kernels import active, dropout_of


class SelfAttention(keras.layers.Layer):
    """Multi-head self-attention with dropout on the attention probabilities.

    Args:
        hidden_size: Width of the input and of the output.
        num_heads: Number of heads; divides `hidden_size`.
        dropout: Dropout rate of the attention probabilities.
        initializer_range: Standard deviation of the initial weights.
    """

    def __init__(
        self, hidden_size, num_heads, dropout=0.1, initializer_range=0.02, **kwargs
    ):
        super().__init__(**kwargs)

        def dense(name):
            return keras.layers.Dense(
                hidden_size,
                kernel_initializer=initializer(initializer_range),
                dtype=self.dtype_policy,
                name=name,
            )

        self.hidden_size = hidden_size
        self.num_heads = num_heads
        self.query = dense("query")
        self.key = dense("key")
        self.value = dense("value")
        self.output_projection = dense("output_projection")
        self.dropout = Dropout(dropout, dtype=self.dtype_policy)

    def build(self, input_shape=None):
        for layer in (self.query, self.key, self.value, self.output_projection):
            layer.build((None, None, self.hidden_size))

    def call(self, x, mask, bias=None, training=False):
        """Attends from every position to the positions that `mask` allows.

        Args:
            x: `[batch, length, hidden]`.
            mask: Boolean, broadcastable to `[batch, heads, length, length]`, true
                where a query (third axis) may look at a key (fourth).
            bias: `None`, or what is added to the attention logits, broadcastable
                likewise (relative positions).
            training: Whether dropout is active.

        Returns:
            `[batch, length, hidden]`, without the output projection's bias, which
            is the residual's to add.
        """
        projections = self.query, self.key, self.value
        # One product is faster than three, and so is its gradient.
        kernel = ops.concatenate([dense.kernel for dense in projections], axis=1)
        context = active().attention(
            ops.matmul(x, kernel),
            ops.concatenate([dense.bias for dense in projections], axis=0),
            self.num_heads,
            mask,
            bias,
            *dropout_of(self.dropout, training),
        )
        return ops.matmul(context, self.output_projection.kernel)
