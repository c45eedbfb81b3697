"""LSTMs that read a translation, and attention that goes on with it.

Clark's thesis, 4.2.4, after Luong et al. (2015): for the decoder's state h_t and the
encoder's states h^j

    alpha_j ~ exp(h^j W_alpha h_t)      c_t = sum over j  alpha_j h^j
    a_t = tanh(W_a [c_t, h_t])          p(y_t | y_<t, x) = softmax(W_s a_t)

The LSTMs do not read a_t, so that decoders with other W_alpha, W_a and W_s have the
same states.
"""

import math

import keras
from keras import ops

from keras_corrupt.cross_view.bilstm.encoder import RowDropout
from keras_corrupt.cross_view.bilstm.lstm import (
    lstm_flops,
    lstm_outputs,
    lstm_parameters,
    lstm_step,
    lstm_weights,
)
from keras_corrupt.encoders.cost import SOFTMAX_FLOPS, dense_flops, dense_parameters

#: The logit of a place where there is no word.
NOWHERE = -1e9


class LSTM(keras.layers.Layer):
    """An LSTM with a projection, which starts from a state that it is given.

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
        self.kernel, self.recurrent, self.bias, self.projection = (
            self.add_weight(shape, initializer, name=name)
            for name, (shape, initializer) in lstm_weights(*sizes).items()
        )

    def gates(self, x):
        """Returns what words add to the gates, `[..., 4 * hidden]`."""
        kernel, bias = (ops.cast(w, x.dtype) for w in (self.kernel, self.bias))
        return ops.matmul(x, kernel) + bias

    def step(self, x, state):
        """Reads one word, `[..., size]`; returns the next output and cell.

        `state` are output and cell, `[..., projection]` and `[..., hidden]`.
        """
        return lstm_step(state, self.gates(x), *self._weights(x.dtype))

    def call(self, x, state):
        """Reads words, `[batch, length, size]`; returns the outputs of all.

        `state` are output and cell before the first word.
        """
        gates = ops.transpose(self.gates(x), (1, 0, 2))
        outputs = lstm_outputs(gates, state, *self._weights(x.dtype))
        return ops.transpose(outputs, (1, 0, 2))

    def _weights(self, dtype):
        return [ops.cast(weight, dtype) for weight in (self.recurrent, self.projection)]


class Decoder(keras.layers.Layer):
    """Reads a translation from left to right: embeddings and LSTMs.

    Each LSTM starts from a dense layer with tanh on what the encoder made of the whole
    sentence.

    Args:
        num_words: Number of word ids.
        embedding_size: Width of the words' vectors.
        hidden_sizes: Widths of the LSTMs' cells, from the first layer on.
        projection_size: Width of their outputs.
    """

    def __init__(
        self,
        num_words,
        embedding_size=300,
        hidden_sizes=(1024, 1024),
        projection_size=512,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.autocast = False  # ids
        self.num_words = num_words
        self.projection_size = projection_size
        self.sizes = {
            "embedding_size": embedding_size,
            "hidden_sizes": list(hidden_sizes),
            "projection_size": projection_size,
        }
        self.embedding = keras.layers.Embedding(
            num_words, embedding_size, dtype=self.dtype_policy, name="embedding"
        )
        self.lstms = [
            LSTM(size, projection_size, dtype=self.dtype_policy, name=f"lstm_{i}")
            for i, size in enumerate(hidden_sizes)
        ]
        self.starts = [
            keras.layers.Dense(
                size + projection_size,
                "tanh",
                dtype=self.dtype_policy,
                name=f"start_{i}",
            )
            for i, size in enumerate(hidden_sizes)
        ]
        self.dropout = RowDropout(dtype=self.dtype_policy, name="dropout")

    def build(self, summary_size):
        self.embedding.build()
        size = self.embedding.output_dim
        for start, lstm in zip(self.starts, self.lstms, strict=True):
            start.build((None, summary_size))
            lstm.build((None, None, size))
            size = self.projection_size

    def first_states(self, summary):
        """Returns each LSTM's output and cell before the first word.

        `summary` is what the encoder made of the sentence, `[..., summary_size]`.
        """
        size = self.projection_size
        starts = [start(summary) for start in self.starts]
        return [
            (start[..., :size], ops.cast(start[..., size:], "float32"))
            for start in starts
        ]

    def step(self, word_ids, states):
        """Reads one word of each translation, int32 `[...]`.

        Returns the last LSTM's output, `[..., projection]`, and the next states: each
        LSTM's output and cell.
        """
        x, new_states = self.embedding(word_ids), []
        for lstm, state in zip(self.lstms, states, strict=True):
            new_states.append(lstm.step(x, state))
            x = new_states[-1][0]
        return x, new_states

    def call(self, word_ids, states, dropout_rates=None):
        """Reads translations.

        Args:
            word_ids: int32 `[batch, length]`.
            states: Each LSTM's output and cell before the first word.
            dropout_rates: float32 `[batch]`, the rate at which each translation loses
                parts of the LSTMs' outputs; `None` for none.

        Returns:
            The last LSTM's outputs, `[batch, length, projection]`.
        """
        x = self.embedding(word_ids)
        for lstm, state in zip(self.lstms, states, strict=True):
            x = lstm(x, state)
            if dropout_rates is not None:
                x = self.dropout(x, dropout_rates)
        return x

    def flops(self, length):
        """Counts one translation, forward; see `BiLSTMEncoder.flops`."""
        word = sum(
            lstm_flops(lstm.kernel.shape[0], lstm.hidden_size, self.projection_size)
            for lstm in self.lstms
        )
        starts = sum(
            dense_flops(*start.kernel.shape) + start.units for start in self.starts
        )
        return length * word + starts

    @staticmethod
    def parameters(sizes, num_words, summary_size):
        """Counts the weights of a decoder.

        Args:
            sizes: Dict of `embedding_size`, `hidden_sizes` and `projection_size`.
            num_words: See the class.
            summary_size: The width of what its first states are made of.
        """
        width, size = sizes["embedding_size"], sizes["projection_size"]
        total = num_words * width
        for hidden in sizes["hidden_sizes"]:
            total += lstm_parameters(width, hidden, size)
            total += dense_parameters(summary_size, hidden + size)
            width = size
        return total


class AttentionModule(keras.layers.Layer):
    """Predicts the next words of a translation: see this file's equations.

    Args:
        hidden_size: Width of a_t.
        num_classes: Number of classes.
        attention_dropout: The rate at which attention weights are set to zero, the
            others scaled up, where a seed is given.
    """

    def __init__(self, hidden_size, num_classes, attention_dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        self.hidden_size = hidden_size
        self.num_classes = num_classes
        self.attention_dropout = attention_dropout

    def build(self, source_size, state_size):
        shapes = self.shapes(
            source_size, state_size, self.hidden_size, self.num_classes
        )
        self.bilinear_kernel, self.hidden_kernel, self.output_kernel = (
            self.add_weight(shape, "glorot_uniform", name=name)
            for name, shape in shapes.items()
        )

    @staticmethod
    def shapes(source_size, state_size, hidden_size, num_classes):
        """Returns name -> shape of the weights."""
        return {
            "bilinear": (source_size, state_size),
            "hidden": (source_size + state_size, hidden_size),
            "output": (hidden_size, num_classes),
        }

    @classmethod
    def parameters(cls, *sizes):
        """Counts the weights; see `shapes`."""
        return sum(map(math.prod, cls.shapes(*sizes).values()))

    def keys(self, source):
        """Returns h^j W_alpha, `[batch, source length, state size]`.

        Args:
            source: The encoder's states h^j, `[batch, source length, source size]`.
        """
        return ops.matmul(source, ops.cast(self.bilinear_kernel, source.dtype))

    def attention(self, keys, words, states):
        """Returns alpha, float32 `[batch, length, source length]`.

        Args:
            keys: What `keys` returned.
            words: Where the sentence has words, `[batch, source length]`.
            states: The decoder's, `[batch, length, state size]`.
        """
        logits = ops.einsum("bjs,bts->btj", keys, states)
        words = ops.cast(words, "bool")[:, None, :]
        return ops.softmax(ops.where(words, ops.cast(logits, "float32"), NOWHERE))

    def call(self, source, words, states, seed=None, keys=None):
        """Returns the logits of the next words, `[batch, length, classes]`.

        Args:
            source: See `keys`.
            words: See `attention`.
            states: See there.
            seed: The `SeedGenerator` of attention's dropout; `None` for none.
            keys: What `keys` returned, if it is at hand.
        """
        keys = self.keys(source) if keys is None else keys
        weights = self.attention(keys, words, states)
        if seed is not None:
            weights = keras.random.dropout(weights, self.attention_dropout, seed=seed)
        context = ops.matmul(ops.cast(weights, source.dtype), source)
        both = ops.concatenate([context, states], axis=-1)
        hidden = ops.tanh(ops.matmul(both, ops.cast(self.hidden_kernel, both.dtype)))
        return ops.matmul(hidden, ops.cast(self.output_kernel, hidden.dtype))

    def flops(self, length):
        """Counts one sentence, forward, its translation as long as it is.

        `encoders/cost.py` has the rules.
        """
        source, state = self.bilinear_kernel.shape
        keys = length * 2 * source * state
        attention = length * (2 * state + SOFTMAX_FLOPS + 2 * source)
        word = 2 * (source + state) * self.hidden_size + self.hidden_size  # tanh
        word += 2 * self.hidden_size * self.num_classes
        return keys + length * (attention + word)
