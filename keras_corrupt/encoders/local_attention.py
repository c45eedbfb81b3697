"""Self-attention within a window (Beltagy et al., "Longformer", 2020, section 3.1)."""

from keras import ops

from keras_corrupt.encoders.attention import SelfAttention
from keras_corrupt.encoders.masks import within


class LocalSelfAttention(SelfAttention):
    """A `SelfAttention` that looks no farther than half a window to either side.

    All logits are computed, and those outside the window are masked.

    Args:
        window: Int, even. Tokens to both sides together.
        args: Arguments of `SelfAttention`.
        kwargs: Arguments of `SelfAttention`.
    """

    def __init__(self, window, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.window = window

    def call(self, x, mask, *args, **kwargs):
        """Attends; the arguments are `SelfAttention`'s, whose `mask` is narrowed."""
        near = within(mask, ops.shape(x)[1], self.window)
        return super().call(x, near, *args, **kwargs)
