"""What passes between corruption and the objectives."""

from typing import NamedTuple

from keras import ops

from keras_corrupt.corruption.masking import Masking


class Predictions(NamedTuple):
    """What a network says of the tokens at masked positions.

    Attributes:
        token_ids: int32 `[batch, length]`, what the network read.
        masking: The `Masking`, of `[batch, masked]`.
        target_ids: int32 `[batch, masked]`, the original tokens.
        logits: float32 `[batch, masked, vocabulary]`.
    """

    token_ids: object
    masking: Masking
    target_ids: object
    logits: object


class Corrupted(NamedTuple):
    """A text in which samples took the places of some tokens.

    Attributes:
        original_ids: int32 `[batch, length]`, the text.
        token_ids: int32 `[batch, length]`, the text with the samples.
        masking: The `Masking`, of `[batch, masked]`, whose positions got samples.
        target_ids: int32 `[batch, masked]`, the original tokens there.
        sampled_ids: int32 `[batch, masked]`, the samples.
    """

    original_ids: object
    token_ids: object
    masking: Masking
    target_ids: object
    sampled_ids: object

    @property
    def replaced(self):
        """float32 `[batch, length]`: 1 where the token is not the original."""
        return ops.cast(self.original_ids != self.token_ids, "float32")

    @property
    def restored(self):
        """Boolean `[batch, masked]`: whether the sample is the original token."""
        return self.sampled_ids == self.target_ids
