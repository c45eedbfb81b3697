"""COCO-LM's main network: one encoder that detects and corrects."""

import functools

from keras_corrupt.heads import ReplacedTokenHead, VocabularyHead
from keras_corrupt.models.replaced_token_detection.generator_discriminator import (
    Discriminator,
)


class CorrectiveDiscriminator(Discriminator):
    """A discriminator with a softmax over the vocabulary.

    Neither head has a hidden layer: the probability of copying is a sigmoid of one
    product (Meng et al., 2021, 3.3), and the vocabulary's softmax reads the encoder's
    output as it is (appendix D: this is more stable).

    Args:
        encoder: Constructor arguments of `TransformerEncoder`.
        corrects: Whether there is a softmax.
    """

    head_class = functools.partial(ReplacedTokenHead, transform=False)

    def __init__(self, encoder, corrects=True, **kwargs):
        super().__init__(encoder, **kwargs)
        self.vocabulary_head = None
        if corrects:
            self.vocabulary_head = VocabularyHead(
                self.encoder,
                transform=False,
                dtype=self.dtype_policy,
                name="vocabulary_head",
            )
