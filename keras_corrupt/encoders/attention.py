"""Multi-head self-attention (Vaswani et al., 2017, 3.2)."""

import keras
from keras import ops

from keras_corrupt.devices import (
    dropout_attention,
    flash_attention,
    splash_attention,
)
from keras_corrupt.devices.replicas import Dropout
from keras_corrupt.encoders.cost import (
    ATTENTION_LOGIT_FLOPS,
    DROPOUT_FLOPS,
    SOFTMAX_FLOPS,
)
from keras_corrupt.encoders.dense import Dense
from keras_corrupt.encoders.embeddings import initializer
from keras_corrupt.encoders.rotary import RotaryPositions

#: What computes attention without dropout and biases, on the devices that have it.
KERNELS = (flash_attention, splash_attention)


class SelfAttention(keras.layers.Layer):
    """Multi-head self-attention with dropout on the attention probabilities.

    Args:
        hidden_size: Width of the input and of the output.
        num_heads: Number of heads; divides `hidden_size`.
        dropout: Dropout rate of the attention probabilities.
        initializer_range: Standard deviation of the initial weights.
        remat: Whether the backward pass computes everything between the projections
            again, so that no attention weights are kept for it.
        use_bias: Whether the projections have biases.
        rotary_theta: `None`, or the base of `RotaryPositions`.
    """

    def __init__(
        self,
        hidden_size,
        num_heads,
        dropout=0.1,
        initializer_range=0.02,
        remat=False,
        use_bias=True,
        rotary_theta=None,
        **kwargs,
    ):
        super().__init__(**kwargs)

        def dense(name):
            return Dense(
                hidden_size,
                use_bias=use_bias,
                kernel_initializer=initializer(initializer_range),
                dtype=self.dtype_policy,
                name=name,
            )

        self.hidden_size = hidden_size
        self.num_heads = num_heads
        self.remat = remat
        self.query = dense("query")
        self.key = dense("key")
        self.value = dense("value")
        self.output_projection = dense("output_projection")
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.rotary = None
        if rotary_theta is not None:
            self.rotary = RotaryPositions(
                hidden_size // num_heads,
                rotary_theta,
                dtype=self.dtype_policy,
                name="rotary",
            )

    def build(self, input_shape=None):
        for layer in (self.query, self.key, self.value, self.output_projection):
            layer.build((None, None, self.hidden_size))

    def call(self, x, mask, bias=None, training=False, seed=None):
        """Attends from every position to the positions that `mask` allows.

        Args:
            x: `[batch, length, hidden]`.
            mask: Boolean, broadcastable to `[batch, heads, length, length]`, true
                where a query (third axis) may look at a key (fourth).
            bias: `None`, or a term of the attention logits, broadcastable likewise
                (relative positions).
            training: Whether dropout is active.
            seed: What `dropout.draw` returned, if it was asked before.

        Returns:
            `[batch, length, hidden]`.
        """
        projected = (dense(x) for dense in (self.query, self.key, self.value))
        attended = self.attended(*projected, mask, bias, training, seed)
        return self.output_projection(attended)

    def attended(self, query, key, value, mask, bias, training, seed):
        """Returns what the heads attend to, `[batch, length, hidden]`.

        Args:
            query: What `query` made of the input, `[batch, length, hidden]`.
            key: Likewise.
            value: Likewise.
            mask: See `call`.
            bias: Likewise.
            training: Likewise.
            seed: Likewise.
        """
        batch, length, hidden = ops.shape(query)
        heads = batch, length, self.num_heads, hidden // self.num_heads
        query, key, value = (ops.reshape(x, heads) for x in (query, key, value))
        if self.rotary is not None:
            query, key = self.rotary(query), self.rotary(key)
        seed = seed or self.dropout.draw(training)

        def attend(query, key, value, bias=None):
            if seed is not None and bias is None and dropout_attention.applies(query):
                return dropout_attention.attend(
                    query, key, value, mask, self.dropout.rate, seed.next()
                )
            if seed is not None:
                return self._with_dropout(query, key, value, mask, bias, seed)
            for kernel in KERNELS if bias is None else ():
                if kernel.applies(query, mask):
                    return kernel.attend(query, key, value, mask)
            # On TPUs, Keras's flash attention would leave out the bias.
            return ops.dot_product_attention(
                query, key, value, bias, mask, flash_attention=False
            )

        if training and self.remat:
            attend = keras.remat(attend)
        biases = () if bias is None else (bias,)
        context = attend(query, key, value, *biases)
        return ops.reshape(context, (batch, length, hidden))

    def flops(self, length, has_bias=False, training=False):
        """Counts one sequence, forward; `has_bias` says whether logits get a bias."""
        weight = ATTENTION_LOGIT_FLOPS + has_bias + SOFTMAX_FLOPS
        weight += DROPOUT_FLOPS * training
        turned = 0 if self.rotary is None else self.rotary.flops(2 * self.hidden_size)
        return length * (
            4 * self.query.flops()  # Query, key, value, output.
            + turned
            + 2 * (2 * self.hidden_size * length)  # Logits, and the mean of the values.
            + self.num_heads * length * weight
        )

    def _with_dropout(self, query, key, value, mask, bias, seed):
        """What `ops.dot_product_attention` does, with dropout of the weights."""
        query = ops.transpose(query, (0, 2, 1, 3))  # [batch, heads, length, size]
        key = ops.transpose(key, (0, 2, 3, 1))
        value = ops.transpose(value, (0, 2, 1, 3))
        logits = ops.cast(ops.matmul(query, key), "float32") * query.shape[-1] ** -0.5
        if bias is not None:
            logits = logits + ops.cast(bias, "float32")
        weights = ops.softmax(ops.where(mask, logits, -1e9))
        weights = ops.cast(weights, value.dtype)
        weights = self.dropout(weights, training=True, seed=seed)
        return ops.transpose(ops.matmul(weights, value), (0, 2, 1, 3))
