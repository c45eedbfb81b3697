"""The head over the vocabulary: which token stands, or stood, at a position."""

import keras
from keras import ops

from keras_corrupt.encoders.cost import SOFTMAX_FLOPS, dense_flops
from keras_corrupt.heads import chunks
from keras_corrupt.heads.softmax import output_logits
from keras_corrupt.heads.transform import transform_and_norm, transform_flops

#: Positions of each sequence whose logits are held at once where all are gone through.
CHUNK_SIZE = 16


class VocabularyHead(keras.layers.Layer):
    """A softmax over the vocabulary, whose matrix is a table of token embeddings.

    BERT's (Devlin et al., 2019) is a linear layer to the embedding size, gelu and layer
    norm, then the encoder's own input embeddings and a bias of each token; COCO-LM's
    main model has no such transform.

    At a few positions its `call` gives the logits. The other methods are for objectives
    of all positions. They go through them chunk by chunk and never hold logits of all;
    what they do is in float32 but for the matrix products.

    Args:
        encoder: The `TransformerEncoder` whose output it reads and whose token
            embeddings are the matrix.
        transform: Whether linear layer, gelu and norm come first. Without them, the
            states have the embedding size.
        hidden_size: Width of what it reads, the encoder's if not given. Electric's
            generator reads two encoders side by side (Clark's thesis, 5.1.5).
        chunk_size: Positions of each sequence whose logits are held at once.

    Raises:
        ValueError: What it reads is not as wide as the embeddings, and it has no
            transform.

    Example:

    >>> import numpy as np
    >>> from keras_corrupt.encoders import TransformerEncoder
    >>> encoder = TransformerEncoder(
    ...     vocabulary_size=100, num_layers=1, hidden_size=16,
    ...     intermediate_size=32, num_heads=2, max_length=8)
    >>> head = VocabularyHead(encoder)
    >>> hidden = np.ones((1, 5, 16), "float32")
    >>> tuple(head(hidden, np.array([[1, 3]])).shape)
    (1, 2, 100)
    >>> tuple(head.loss(hidden, np.array([[7, 9, 3, 2, 0]])).shape)
    (1, 5)
    """

    def __init__(
        self,
        encoder,
        transform=True,
        hidden_size=None,
        chunk_size=CHUNK_SIZE,
        **kwargs,
    ):
        super().__init__(**kwargs)
        hidden_size = hidden_size or encoder.hidden_size
        if not transform and hidden_size != encoder.embedding_size:
            raise ValueError(
                f"`transform=False` needs a `hidden_size` equal to the encoder's "
                f"embedding_size={encoder.embedding_size}; got {hidden_size}. Use "
                "`transform=True`."
            )

        # === Layers ===
        self.token = encoder.embeddings.token
        self.transform = self.norm = None
        if transform:
            self.transform, self.norm = transform_and_norm(
                encoder, encoder.embedding_size, self.dtype_policy
            )

        # === Config ===
        self.sizes = {**encoder.architecture, "hidden_size": hidden_size}
        self.chunk_size = chunk_size

        self.build()

    def build(self, input_shape=None):
        if self.transform is not None:
            self.transform.build((None, None, self.sizes["hidden_size"]))
            self.norm.build((None, None, self.sizes["embedding_size"]))
        self.bias = self.add_weight(
            shape=(self.sizes["vocabulary_size"],), initializer="zeros", name="bias"
        )

    def call(self, hidden, positions):
        """Computes the logits at some positions.

        Args:
            hidden: `[batch, length, hidden]`.
            positions: int32 `[batch, masked]`.

        Returns:
            float32 `[batch, masked, vocabulary]`.
        """
        # Only the masked positions meet the vocabulary: six times fewer rows.
        hidden = ops.take_along_axis(hidden, positions[..., None], axis=1)
        hidden, table = self._states_and_table(hidden)
        products = ops.matmul(hidden, ops.transpose(table))
        return output_logits(products, self.bias)

    def log_probabilities(self, hidden, token_ids):
        """Logarithm of the probability of a given token at every position.

        Args:
            hidden: `[batch, length, hidden]`.
            token_ids: int `[batch, length]`.

        Returns:
            float32 `[batch, length]`.
        """
        return chunks.log_probabilities(
            *self._states_and_table(hidden), self.bias, token_ids, self.chunk_size
        )

    def loss(self, hidden, token_ids):
        """Cross-entropy of the tokens: `log_probabilities` times -1."""
        return -self.log_probabilities(hidden, token_ids)

    def top_k(self, hidden, k):
        """Returns the k likeliest tokens at every position; no gradient flows.

        Args:
            hidden: `[batch, length, hidden]`.
            k: Number of tokens.

        Returns:
            int32 `[batch, length, k]`, the likeliest first.
        """
        return chunks.top_k(
            *self._states_and_table(hidden), self.bias, k, self.chunk_size
        )

    def _states_and_table(self, hidden):
        """Returns both factors: vectors of the embedding size, and the matrix."""
        if self.transform is not None:
            hidden = self.norm(self.transform(hidden))
        return ops.cast(hidden, self.compute_dtype), self._table()

    def _table(self):
        """Returns the token embeddings, also those that `quantize` made integers."""
        table = ops.convert_to_tensor(self.token.embeddings)
        mode = self.token.quantization_mode
        if mode == "int8":
            table = ops.cast(table, "float32") / self.token.embeddings_scale[:, None]
        elif mode is not None:
            raise ValueError(
                f"Token embeddings quantized as {mode!r} cannot be a softmax's matrix; "
                'use `quantize("int8")`.'
            )
        return ops.cast(table, self.compute_dtype)

    # === What it costs ===

    def flops(self, num_positions):
        """Counts one sequence, forward, with that many positions predicted.

        After the transform come the tied output matrix and its bias, the softmax, and
        the pick of the target's probability, which is a look-up and so dense as well.
        Draws are left out.
        """
        vocabulary = self.sizes["vocabulary_size"]
        position = dense_flops(self.sizes["embedding_size"], vocabulary)
        position += (SOFTMAX_FLOPS + 2) * vocabulary
        if self.transform is not None:
            position += transform_flops(self.transform)
        return num_positions * position

    def activation_bytes(self, num_positions, number_bytes):
        """Counts the logits of a training step and their gradient.

        Args:
            num_positions: Int. Positions whose logits are held at once, in all
                sequences.
            number_bytes: Int. Bytes of a number: 4, or 2 in mixed precision.

        Returns:
            Int. Bytes.
        """
        return 2 * num_positions * self.sizes["vocabulary_size"] * number_bytes

    def chunk_bytes(self, batch_size, length):
        """Counts the logits of a chunk, for methods that go through all positions."""
        return self.activation_bytes(batch_size * min(self.chunk_size, length), 4)
