"""Cropping: a contiguous part of each text."""

import keras
from keras import ops

from keras_corrupt.corruption.masking import num_masked


def cropped_length(fraction, length):
    """Returns the slots of a crop of a sequence: its first token, and of the others.

    >>> cropped_length(0.9, 512)
    461
    """
    return 1 + num_masked(fraction, length - 1)


def crop_texts(inputs, fraction, seed, padding_id=0):
    """Keeps a random contiguous part of each text behind its first token.

    The first token, `[CLS]`, stays at the front. From the n tokens behind it,
    `ceil(fraction * n)` are kept, from a uniformly drawn place on; so at least one is
    kept, if n is not 0. The arrays get shorter, too.

    Meng et al., 2021, 3.3: 90% of the text.

    Args:
        inputs: A model's inputs; `token_ids`, `segment_ids` and `padding_mask` are
            read.
        fraction: Fraction of the tokens to keep, more than 0 and at most 1.
        seed: A `keras.random.SeedGenerator`.
        padding_id: The token id of padding.

    Returns:
        A dict of int32 `[batch, 1 + ceil(fraction * (length - 1))]`: `token_ids`,
        `segment_ids` and `padding_mask`.

    Example:

    >>> import numpy as np
    >>> ids = np.array([[2, 7, 8, 3, 0, 0]])
    >>> inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": ids > 0}
    >>> cropped = crop_texts(inputs, 1.0, keras.random.SeedGenerator(0))
    >>> np.array(cropped["token_ids"]).tolist()
    [[2, 7, 8, 3, 0, 0]]
    """
    batch, length = ops.shape(inputs["token_ids"])
    tokens = ops.sum(ops.cast(inputs["padding_mask"], "int32"), axis=1)
    behind = ops.maximum(tokens - 1, 0)
    kept = num_masked(fraction, behind)  # [batch]
    # As many starts as there are places: the draw is below 1, but not its product.
    places = behind - kept
    draw = keras.random.uniform((batch,), seed=seed, dtype="float32")
    start = ops.cast(draw * ops.cast(places + 1, "float32"), "int32")
    start = ops.minimum(start, places)

    slot = ops.arange(cropped_length(fraction, length), dtype="int32")[None, :]
    real = ops.cast(slot <= kept[:, None], "int32")
    real = real * ops.cast(tokens > 0, "int32")[:, None]
    source = ops.where(slot > 0, slot + start[:, None], 0)
    source = ops.minimum(source, length - 1)

    def part(name):
        return ops.take_along_axis(ops.cast(inputs[name], "int32"), source, axis=1)

    return {
        "token_ids": ops.where(real > 0, part("token_ids"), padding_id),
        "segment_ids": part("segment_ids") * real,
        "padding_mask": real,
    }
