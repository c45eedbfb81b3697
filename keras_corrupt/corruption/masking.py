"""Choice of the positions to corrupt, and masking them."""

import math
import numbers
from typing import Any, NamedTuple

import keras
from keras import ops

from keras_corrupt.corruption.replacement import replace_tokens


class Masking(NamedTuple):
    """Positions chosen in each sequence of a batch.

    A fixed number for every sequence, so that shapes are static; a sequence with
    fewer has weight 0 in the slots left over.

    Attributes:
        positions: int32 `[batch, masked]`, indices into the sequence.
        weights: float32 `[batch, masked]`, 1 for a chosen position, 0 for a spare slot.
    """

    positions: Any
    weights: Any


def num_masked(mask_rate, length):
    """Returns `ceil(mask_rate * length)`, the masked slots of a sequence.

    Clark's thesis, 5.1: k = ceil(0.15 n). It is an int; an int32 tensor where the
    length is a tensor, because it is known only in a running graph.

    >>> num_masked(0.15, 128), num_masked(0.25, 512), num_masked(0.15, 100)
    (20, 128, 15)
    """
    if not isinstance(length, numbers.Real):
        # The small constant undoes float32's rounding up of, say, 0.15 * 100.
        product = mask_rate * ops.cast(length, "float32")
        return ops.cast(ops.ceil(product - 1e-4), "int32")
    # The product is rounded first: 0.15 * 100 is 15.000000000000002 in floats.
    return math.ceil(round(mask_rate * length, 6))


def maskable_tokens(inputs, unmaskable_ids):
    """Returns which tokens may be chosen, booleans `[batch, length]`.

    Args:
        inputs: The model's inputs; `token_ids` and `padding_mask` are read.
        unmaskable_ids: Token ids never chosen.
    """
    maskable = ops.cast(inputs["padding_mask"], "bool")
    for unmaskable_id in unmaskable_ids:
        maskable = ops.logical_and(maskable, inputs["token_ids"] != unmaskable_id)
    return maskable


def num_chosen(inputs, maskable, mask_rate, num_masks=1):
    """Counts the tokens that `choose_positions` chooses, and from which it does.

    Args:
        inputs: The model's inputs; `padding_mask` is read.
        maskable: What `maskable_tokens` returned.
        mask_rate: See `choose_positions`.
        num_masks: See there.

    Returns:
        Two int32 `[batch]`: the tokens chosen for each mask, and the maskable tokens.
    """
    length = ops.sum(ops.cast(inputs["padding_mask"], "int32"), axis=1)
    available = ops.sum(ops.cast(maskable, "int32"), axis=1)
    target = num_masked(mask_rate, length)
    return ops.minimum(target, available // num_masks), available


def choose_positions(inputs, mask_rate, unmaskable_ids, seed, num_masks=1):
    """Chooses positions uniformly and without replacement.

    A sequence of n tokens (padding aside) gets `ceil(mask_rate * n)` of them, or all
    that may be masked where those are fewer. Several masks of a sequence have no
    position in common and are of one size; each alone is as uniform as a single one
    (Zheng et al., 2020, section 3.3 and lemma 2).

    Args:
        inputs: The model's inputs; `token_ids` and `padding_mask` are read.
        mask_rate: Fraction of a sequence's tokens to choose, between 0 and 1.
        unmaskable_ids: Token ids never chosen: `[CLS]`, `[SEP]`, `[PAD]`.
        seed: A `keras.random.SeedGenerator`.
        num_masks: Masks of each sequence.

    Returns:
        A `Masking` with `num_masked(mask_rate, length)` slots (fewer if so many masks
        do not fit), `[batch * num_masks, masked]`: a sequence's masks in turn.
    """
    token_ids = inputs["token_ids"]
    batch, length = ops.shape(token_ids)
    slots = slots_of(mask_rate, length, num_masks)
    maskable = maskable_tokens(inputs, unmaskable_ids)
    # The k largest of independent uniform keys are a uniform draw of k positions
    # without replacement; positions that may not be chosen sort behind all others.
    keys = keras.random.uniform(ops.shape(token_ids), seed=seed, dtype="float32")
    keys = ops.where(maskable, keys, -1.0)
    _, positions = ops.top_k(keys, num_masks * slots, sorted=True)
    count, _ = num_chosen(inputs, maskable, mask_rate, num_masks)
    slot = ops.arange(slots, dtype="int32")
    # A slot's positions by mask: what falls behind the available ones has weight 0.
    positions = ops.reshape(positions, (batch, slots, num_masks))
    positions = ops.reshape(ops.transpose(positions, (0, 2, 1)), (-1, slots))
    weights = ops.cast(slot[None, :] < count[:, None], "float32")
    return Masking(ops.cast(positions, "int32"), ops.repeat(weights, num_masks, axis=0))


def slots_of(mask_rate, length, num_masks):
    """Returns the slots of each of `num_masks` masks that have nothing in common."""
    slots = num_masked(mask_rate, length)
    if num_masks == 1:
        return slots
    smallest = min if isinstance(slots, int) else ops.minimum
    return smallest(slots, length // num_masks)


def check_rates(keep_rate, random_rate=0.0):
    """Raises a `ValueError` unless both are fractions that add up to at most 1."""
    rates = {"keep_rate": keep_rate, "random_rate": random_rate}
    for name, rate in rates.items():
        if isinstance(rate, str) or not 0 <= rate <= 1:
            raise ValueError(f"`{name}` must lie between 0 and 1; got {rate!r}.")
    if keep_rate + random_rate > 1:
        raise ValueError(
            f"`keep_rate` and `random_rate` must add up to at most 1; got {rates}."
        )


def gather_tokens(token_ids, positions):
    """Returns the ids at `positions`: int32 `[batch, masked]`."""
    return ops.take_along_axis(token_ids, positions, axis=1)


def mask_tokens(
    token_ids, masking, mask_id, vocabulary_size, keep_rate, random_rate, seed
):
    """Puts `[MASK]` at the chosen positions, or leaves or randomises some of them.

    Args:
        token_ids: int32 `[batch, length]`.
        masking: A `Masking`.
        mask_id: Id of `[MASK]`.
        vocabulary_size: Random tokens are drawn uniformly below it.
        keep_rate: Probability that a chosen position keeps its token: 0 in Clark's
            thesis, 0.15 in the released ELECTRA, 0.1 in BERT.
        random_rate: Probability that it gets a random token: 0.1 in BERT, else 0.
        seed: A `keras.random.SeedGenerator`.

    Returns:
        int32 `[batch, length]`.
    """
    shape = ops.shape(masking.positions)
    new_ids = ops.full(shape, mask_id, dtype="int32")
    if keep_rate or random_rate:
        draw = keras.random.uniform(shape, seed=seed, dtype="float32")
        original = gather_tokens(token_ids, masking.positions)
        new_ids = ops.where(draw < keep_rate, original, new_ids)
        if random_rate:
            random_ids = keras.random.randint(shape, 0, vocabulary_size, seed=seed)
            randomise = draw >= 1.0 - random_rate
            new_ids = ops.where(randomise, ops.cast(random_ids, "int32"), new_ids)
    return replace_tokens(token_ids, masking, new_ids)
