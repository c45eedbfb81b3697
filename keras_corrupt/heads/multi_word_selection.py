"""The head of multi-word selection (Shen et al., 2021, equation 7)."""

import keras
from keras import ops

from keras_corrupt.encoders.cost import SOFTMAX_FLOPS
from keras_corrupt.heads.cost import transform_flops
from keras_corrupt.heads.transform import transform_and_norm


class MultiWordSelectionHead(keras.layers.Layer):
    """Scores candidates at the masked positions.

    A linear layer to the embedding size, gelu and layer norm, as in the released
    code, give what is multiplied with the candidates' input embeddings.

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

        Dense, gelu and layer norm at the embedding size, the candidates' look-ups
        (dense, like all), their inner products and the softmax.

        Args:
            num_positions: Int. Masked positions of the sequence.
            num_candidates: Int. Candidates of a position, the original token included.

        Returns:
            Int. FLOPs.
        """
        size, vocabulary = (
            self.sizes[name] for name in ("embedding_size", "vocabulary_size")
        )
        candidate = 2 * vocabulary * size + 2 * size + SOFTMAX_FLOPS
        return num_positions * (
            transform_flops(self.sizes) + num_candidates * candidate
        )
