"""COCO-LM's main network: one encoder that detects, corrects and contrasts."""

import functools

import keras

from keras_corrupt.heads import ReplacedTokenHead, VocabularyHead
from keras_corrupt.heads.transform import transform_and_norm, transform_flops
from keras_corrupt.models.replaced_token_detection.generator_discriminator import (
    Discriminator,
)


class SequenceHead(keras.layers.Layer):
    """A linear layer, gelu and layer norm, through which released code reads [CLS].

    Args:
        encoder: The `TransformerEncoder` whose output it reads.
    """

    def __init__(self, encoder, **kwargs):
        super().__init__(**kwargs)
        self.transform, self.norm = transform_and_norm(
            encoder, encoder.hidden_size, self.dtype_policy
        )
        self.build((None, encoder.hidden_size))

    def build(self, input_shape):
        self.transform.build(input_shape)
        self.norm.build(input_shape)

    def call(self, states):
        """Returns vectors `[..., hidden]`, from `[..., hidden]`."""
        return self.norm(self.transform(states))

    def flops(self):
        """Counts one vector, forward."""
        return transform_flops(self.transform)


class CorrectiveDiscriminator(Discriminator):
    """A discriminator with a softmax over the vocabulary.

    Neither head has a hidden layer: the probability of copying is a sigmoid of one
    product (Meng et al., 2021, 3.3), and the vocabulary's softmax reads the encoder's
    output as it is (appendix D: this is more stable).

    Args:
        encoder: Constructor arguments of `TransformerEncoder`.
        corrects: Whether there is a softmax.
        sequence_transform: Whether there is a `SequenceHead`.
    """

    head_class = functools.partial(ReplacedTokenHead, transform=False)

    def __init__(self, encoder, corrects=True, sequence_transform=False, **kwargs):
        super().__init__(encoder, **kwargs)
        self.vocabulary_head = self.sequence_head = None
        if corrects:
            self.vocabulary_head = VocabularyHead(
                self.encoder,
                transform=False,
                dtype=self.dtype_policy,
                name="vocabulary_head",
            )
        if sequence_transform:
            self.sequence_head = SequenceHead(
                self.encoder, dtype=self.dtype_policy, name="sequence_head"
            )

    # === What it costs: also the softmax, at the masked positions ===

    def flops(self, length, num_masked=0, training=False):
        total = super().flops(length, num_masked, training)
        if self.vocabulary_head is not None:
            total += self.vocabulary_head.flops(num_masked)
        return total

    def activation_bytes(self, batch_size, length, num_masked, number_bytes):
        total = super().activation_bytes(batch_size, length, num_masked, number_bytes)
        if self.vocabulary_head is not None:
            positions = batch_size * num_masked
            total += self.vocabulary_head.activation_bytes(positions, number_bytes)
        return total
