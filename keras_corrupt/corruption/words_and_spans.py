"""Choice of whole words, or of spans of words, to corrupt."""

import keras
from keras import ops

from keras_corrupt.corruption.masking import (
    Masking,
    maskable_tokens,
    num_masked,
    slots_of,
)
from keras_corrupt.corruption.replacement import add_up

#: Words or spans that may fail to fit before a sequence's draw ends.
MISFITS = 3


def choose_words(inputs, mask_rate, unmaskable_ids, seed, word_starts, num_masks=1):
    """Chooses whole words in random order, as many as fit.

    Of a sequence with n tokens (padding aside) at most `ceil(mask_rate * n)` tokens
    are chosen. A word that no longer fits is passed over, at most `MISFITS` times
    (BERT's released code passes over all). Several masks of a sequence have no word in
    common: each is drawn from the words that are left.

    Args:
        inputs: The model's inputs; `token_ids` and `padding_mask` are read.
        mask_rate: Fraction of a sequence's tokens to choose, between 0 and 1.
        unmaskable_ids: Token ids never chosen; a word ends before one.
        seed: A `keras.random.SeedGenerator`.
        word_starts: Booleans `[vocabulary]`, true for tokens that begin a word.
        num_masks: Masks of each sequence.

    Returns:
        A `Masking`, as of `choose_positions`.
    """
    maskable = maskable_tokens(inputs, unmaskable_ids)
    starts = _word_starts(inputs, maskable, word_starts)
    return _choose(inputs, mask_rate, maskable, starts, seed, num_masks)


def choose_spans(
    inputs,
    mask_rate,
    unmaskable_ids,
    seed,
    word_starts,
    mean_length,
    fixed=False,
    num_masks=1,
):
    """Chooses spans of whole words in random order, as many as fit.

    The text is cut into spans first, then spans are drawn from it without replacement,
    so that they never overlap and every token is as likely to be chosen. Lengths are
    geometric, as in SpanBERT (Joshi et al., 2020, 3.1), or all alike.

    Args:
        inputs: See `choose_words`.
        mask_rate: See `choose_words`.
        unmaskable_ids: See `choose_words`; a span ends before one.
        seed: See `choose_words`.
        word_starts: See `choose_words`.
        mean_length: Mean number of words in a span, 1 or more.
        fixed: Whether each span has `mean_length` words, rounded, except at the ends
            of a text. Otherwise a span ends after each word with the same
            probability.
        num_masks: See `choose_words`; they have no span in common.

    Returns:
        See `choose_words`.
    """
    maskable = maskable_tokens(inputs, unmaskable_ids)
    words = _word_starts(inputs, maskable, word_starts)
    first = ops.logical_and(maskable, ops.logical_not(_shifted(maskable)))
    shape = ops.shape(inputs["token_ids"])
    if fixed:
        size = round(mean_length)
        phase = keras.random.randint((shape[0], 1), 0, size, seed=seed, dtype="int32")
        number = ops.cumsum(ops.cast(words, "int32"), axis=1) + phase
        cuts = ops.equal(ops.mod(number, size), 0)
    else:
        draw = keras.random.uniform(shape, seed=seed, dtype="float32")
        cuts = draw < 1.0 / mean_length
    starts = ops.logical_or(first, ops.logical_and(words, cuts))
    return _choose(inputs, mask_rate, maskable, starts, seed, num_masks)


def _word_starts(inputs, maskable, word_starts):
    """Returns where words begin, booleans `[batch, length]`."""
    begins = ops.take(ops.convert_to_tensor(word_starts), inputs["token_ids"], axis=0)
    first = ops.logical_not(_shifted(maskable))
    return ops.logical_and(maskable, ops.logical_or(begins, first))


def _shifted(booleans):
    """Moves each row one place to the right; the first is false."""
    return ops.pad(booleans[:, :-1], [[0, 0], [1, 0]])


def _choose(inputs, mask_rate, maskable, starts, seed, num_masks):
    """Draws units, each a maskable token marked in `starts` and those that follow."""
    batch, length = ops.shape(inputs["token_ids"])
    real = ops.sum(ops.cast(inputs["padding_mask"], "int32"), axis=1, keepdims=True)
    slots = slots_of(mask_rate, length, num_masks)
    room = ops.minimum(num_masked(mask_rate, real), slots)

    # The unit of each token, counted from 0. Tokens before the first start ([CLS]) are
    # not maskable, so it does not matter that they count as of unit 0.
    unit = ops.cumsum(ops.cast(starts, "int32"), axis=1) - 1
    unit = ops.maximum(unit, 0)
    sizes = add_up(ops.cast(maskable, "int32"), unit, length)  # [batch, units]
    positions, weights = [], []
    for _ in range(num_masks):
        chosen = _units_that_fit(sizes, room, seed)
        sizes = ops.where(chosen, 0, sizes)
        tokens = ops.take_along_axis(chosen, unit, axis=1)
        chosen_weights, chosen_positions = ops.top_k(
            ops.cast(ops.logical_and(tokens, maskable), "float32"), slots, sorted=True
        )
        positions.append(ops.cast(chosen_positions, "int32"))
        weights.append(chosen_weights)
    if num_masks == 1:
        return Masking(positions[0], weights[0])
    # The later ones find less to choose from. By chance each of a sequence's masks may
    # be the first, so that all are alike.
    turn = keras.random.randint((batch, 1), 0, num_masks, seed=seed, dtype="int32")
    order = ops.mod(ops.arange(num_masks, dtype="int32") + turn, num_masks)[..., None]
    return Masking(
        *(
            ops.reshape(
                ops.take_along_axis(ops.stack(arrays, axis=1), order, axis=1),
                (-1, slots),
            )
            for arrays in (positions, weights)
        )
    )


def _units_that_fit(sizes, room, seed):
    """Goes through units in random order; returns which fit, booleans like `sizes`."""
    keys = keras.random.uniform(ops.shape(sizes), seed=seed, dtype="float32")
    order = ops.argsort(ops.where(sizes > 0, keys, 2.0), axis=1)
    sizes = ops.take_along_axis(sizes, order, axis=1)

    waiting, chosen = sizes > 0, ops.zeros_like(sizes, dtype="bool")
    for _ in range(1 + MISFITS):
        used = ops.sum(ops.where(chosen, sizes, 0), axis=1, keepdims=True)
        total = used + ops.cumsum(ops.where(waiting, sizes, 0), axis=1)
        fits = ops.logical_and(waiting, total <= room)
        chosen = ops.logical_or(chosen, fits)
        waiting = ops.logical_and(waiting, ops.logical_not(fits))
        # The first that does not fit is passed over.
        ahead = ops.cumsum(ops.cast(waiting, "int32"), axis=1)
        waiting = ops.logical_and(waiting, ahead > 1)
    # Back from the order of the draw to the units' own.
    return ops.take_along_axis(chosen, ops.argsort(order, axis=1), axis=1)
