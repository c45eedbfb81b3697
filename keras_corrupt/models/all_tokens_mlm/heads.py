"""All-Tokens MLM's network: ELECTRA's discriminator with BERT's softmax."""

from keras_corrupt.heads import VocabularyHead
from keras_corrupt.models.replaced_token_detection.generator_discriminator import (
    Discriminator,
)


class CopyingNetwork(Discriminator):
    """A discriminator, which tells what to copy, and a softmax for the rest.

    Args:
        encoder: Constructor arguments of `TransformerEncoder`.
    """

    def __init__(self, encoder, **kwargs):
        super().__init__(encoder, **kwargs)
        self.vocabulary_head = VocabularyHead(
            self.encoder, dtype=self.dtype_policy, name="vocabulary_head"
        )

    # === What it costs: also the softmax, at every position ===

    def flops(self, length, num_masked=0, training=False):
        softmax = self.vocabulary_head.flops(length)
        return softmax + super().flops(length, num_masked, training)

    def activation_bytes(self, batch_size, length, num_masked, number_bytes):
        sizes = batch_size, length, num_masked, number_bytes
        logits = self.vocabulary_head.chunk_bytes(batch_size, length)
        return logits + super().activation_bytes(*sizes)
