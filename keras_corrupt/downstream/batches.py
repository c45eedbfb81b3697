"""Batches of sequences of like length, so that short ones don't pay for long ones."""

from typing import NamedTuple

import numpy as np

from keras_corrupt.devices.batches import Batches

#: Lengths that sequences are padded to. Few, because each is compiled for.
LENGTHS = (16, 32, 64, 96, 128, 192, 256, 384, 512)


class Feature(NamedTuple):
    """What the model reads of an example, or of a window of it.

    `inputs` and `targets` map names to an integer or float, to a tuple of these, or to
    an array with one entry for each token. `inputs` has `token_ids` and `segment_ids`;
    `targets` is empty where nothing is known. `example` is the index in its list.
    """

    inputs: dict
    targets: dict
    example: int


def make_batches(
    features,
    batch_size,
    max_length,
    padding_id=0,
    seed=None,
    rows=False,
    padded_lengths=LENGTHS,
    together=1,
):
    """Returns one pass over `features` in batches.

    Each batch is padded to one of a few lengths and has exactly `batch_size` rows. A
    length's left-over sequences go with the sequences of the next length; only the
    last batch of all may lack some, which are filled up with copies of weight 0.

    Args:
        features: A list of `Feature`.
        batch_size: Sequences in a batch.
        max_length: The longest a sequence may be.
        padding_id: Token id of padding; everything else is padded with zeros.
        seed: For training: `features` and batches are shuffled, anew in every pass.
            `None` for neither.
        rows: Whether to add a fourth element, the batch's indices into `features`.
        padded_lengths: The lengths to pad to, besides `max_length`.
        together: How many features in a row are one sequence of those that are shuffled
            and counted, such as the two texts of a pair. A batch has them row by row.

    Returns:
        `Batches` of `(inputs, targets, weights)`; `inputs` has `padding_mask` beside
        what the features have.

    Raises:
        ValueError: No feature, or one is longer than `max_length`, or `batch_size` is
            less than 1.
    """
    if not batch_size >= 1:
        raise ValueError(f"`batch_size` must be 1 or more; got {batch_size!r}.")
    if not features:
        raise ValueError("`features` is empty: there is nothing to make batches of.")
    lengths = np.array([len(f.inputs["token_ids"]) for f in features])
    if lengths.max() > max_length:
        raise ValueError(
            f"A feature has {lengths.max()} tokens, more than max_length={max_length}."
        )
    buckets = [n for n in padded_lengths if n < max_length] + [max_length]
    longest = lengths.reshape(-1, together).max(axis=1)

    def batch(pass_number, place, planned):
        sequences, length = planned
        indices = (sequences[:, None] * together + np.arange(together)).ravel()
        size = batch_size * together
        return assemble(features, indices, size, length, padding_id)[: 4 if rows else 3]

    def plan_of(pass_number):
        rng = None if seed is None else np.random.default_rng((seed, pass_number))
        return plan(longest, batch_size, buckets, rng)

    return passes(plan_of, batch, -(-len(longest) // batch_size))


def passes(plan_of, batch, count, first_pass=0):
    """Returns the `Batches` of a pass, in another order in each pass.

    A pass begins when its first batch is asked for, also by who looks at it alone.

    Args:
        plan_of: Function of a pass's number that returns its plan, a list.
        batch: Function of a pass's number, a batch's number in it and an element of the
            plan, that returns the batch.
        count: Batches in a pass.
        first_pass: The number of the first pass.
    """
    number, planned = first_pass - 1, []

    def numbered(place):
        nonlocal number, planned
        if place == 0:
            number += 1
            planned = plan_of(number)
        return batch(number, place, planned[place])

    return Batches(numbered, count, varying=(1,))


def plan(lengths, batch_size, buckets, rng=None):
    """Divides the sequences of a pass into batches.

    Args:
        lengths: Tokens of each sequence, int `[sequences]`.
        batch_size: Sequences in a batch.
        buckets: The lengths to pad to, in order; no sequence is longer than the last.
        rng: A `numpy.random.Generator` to shuffle with, or `None`.

    Returns:
        A list of `(indices, padded length)`.

    >>> plan(np.array([5, 70, 9, 100]), 2, [16, 128])
    [(array([0, 2]), 16), (array([1, 3]), 128)]
    """
    order = np.arange(len(lengths)) if rng is None else rng.permutation(len(lengths))
    bucket_of = np.searchsorted(buckets, lengths[order])
    batches, waiting = [], order[:0]
    for i, length in enumerate(buckets):
        waiting = np.concatenate([waiting, order[bucket_of == i]])
        whole = len(waiting) - len(waiting) % batch_size
        for start in range(0, whole, batch_size):
            batches.append((waiting[start : start + batch_size], length))
        waiting = waiting[whole:]
    if len(waiting):
        longest = lengths[waiting].max()
        batches.append((waiting, buckets[np.searchsorted(buckets, longest)]))
    if rng is not None:
        rng.shuffle(batches)
    return batches


def assemble(features, indices, batch_size, length, padding_id):
    """Returns a batch's inputs, targets, weights and indices."""
    weights = (np.arange(batch_size) < len(indices)).astype("float32")
    indices = np.resize(indices, batch_size)  # repeats them to fill up
    rows = [features[i] for i in indices]
    inputs = _stacked([row.inputs for row in rows], length)
    targets = _stacked([row.targets for row in rows], length)
    counts = np.array([len(row.inputs["token_ids"]) for row in rows])
    real = np.arange(length) < counts[:, None]
    inputs["token_ids"] = np.where(real, inputs["token_ids"], np.int32(padding_id))
    inputs["padding_mask"] = real.astype("int32")
    return inputs, targets, weights, indices.astype("int32")


def _stacked(rows, length):
    return {name: _stack([row[name] for row in rows], length) for name in rows[0]}


def _stack(values, length):
    kind = "float32" if np.asarray(values[0]).dtype.kind == "f" else "int32"
    if np.ndim(values[0]) == 0 or isinstance(values[0], tuple):
        return np.array(values, kind)
    stacked = np.zeros((len(values), length), kind)
    for row, value in zip(stacked, values, strict=True):
        row[: len(value)] = value
    return stacked
