"""The head of multi-word selection (Shen et al., 2021, equation 7)."""

import keras
from keras import ops

from keras_corrupt.encoders.cost import SOFTMAX_FLOPS
from keras_corrupt.heads.transform import transform_and_norm, transform_flops


class MultiWordSelectionHead(keras.layers.Layer):
    """Scores candidates at the masked positions.

    A linear layer to the embedding size, gelu and layer norm, as in the released
    code, give the vectors that are multiplied with the candidates' input embeddings.

    Args:
        encoder: The `TransformerEncoder` whose output it reads.
    """

    def __init__(self, encoder, **kwargs):
        super().__init__(**kwargs)
        self.sizes = encoder.architecture
        self.token = encoder.embeddings.token
        self.transform, self.norm = transform_and_norm(
            encoder, encoder.embedding_size, self.dtype_policy
        )
        self.build()

    def build(self, input_shape=None):
        self.transform.build((None, None, self.sizes["hidden_size"]))
        self.norm.build((None, None, self.sizes["embedding_size"]))

    def call(self, hidden, positions, candidate_ids):
        """Scores the candidates by inner products.

        Args:
            hidden: `[batch, length, hidden]`.
            positions: int32 `[batch, masked]`.
            candidate_ids: int32 `[batch, masked, candidates]`.

        Returns:
            float32 `[batch, masked, candidates]`.
        """
        hidden = ops.take_along_axis(hidden, positions[..., None], axis=1)
        hidden = self.norm(self.transform(hidden))
        candidates = self.token(candidate_ids)  # [batch, masked, candidates, embedding]
        products = ops.matmul(candidates, hidden[..., None])[..., 0]
        return ops.cast(products, "float32")

    def flops(self, num_positions, num_candidates):
        """Counts one sequence, forward.

        After the transform come the candidates' look-ups (dense, like all), their
        inner products and the softmax.
        """
        size, vocabulary = self.sizes["embedding_size"], self.sizes["vocabulary_size"]
        candidate = 2 * vocabulary * size + 2 * size + SOFTMAX_FLOPS
        position = transform_flops(self.transform) + num_candidates * candidate
        return num_positions * position
