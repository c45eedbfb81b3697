"""Batches of several tasks' sequences: each row has the targets of its own task."""

import keras
import numpy as np

from keras_corrupt.downstream.batches import LENGTHS, assemble, passes, plan
from keras_corrupt.downstream.soft_targets import mixed
from keras_corrupt.multitask.sampling import EXPONENT, rows_of_pass

#: Sequences of up to so many tokens, and more than the next lower number, are shuffled
#: together. Between fewer tokens, as of `LENGTHS`, tasks of short and of long texts
#: would share few batches: of GLUE's eight tasks, 2,000 examples each, two rows of a
#: batch are of different tasks in 84% of cases, with `LENGTHS` in 73%, in 88% without
#: regard to length, which takes 1.7 times the tokens.
WINDOWS = (64, 128, 256, 512)


def mixed_batches(
    parts,
    features,
    batch_size,
    seed=0,
    exponent=EXPONENT,
    soft_targets=None,
    gold_weight=None,
    first_pass=0,
):
    """Returns a pass over a sample of all tasks' sequences, mixed within batches.

    Each pass is another one. Sequences of several tasks are together within
    `WINDOWS` of lengths. Sequences of a single task have nothing to mix with;
    their lengths are as in `make_batches`. Each batch is padded as there.

    Args:
        parts: Name of a task -> its model.
        features: Name of a task -> its features, of examples with labels.
        batch_size: Sequences in a batch.
        seed: Decides which sequences are drawn, and their order.
        exponent: How the size of a task decides how often it is drawn: see `sampling`.
        soft_targets: Name of a task -> for each of its features what its teacher puts
            out (`DownstreamModel.soft_targets`). A task that is not in it learns from
            its labels alone.
        gold_weight: Function of the number of updates done that returns the labels'
            share beside the teachers'.
        first_pass: How many passes have been made.

    Returns:
        `Batches` of `(inputs, targets, weights)`. `inputs` has `task`, the
        number of each row's, and what any of the models reads; `targets` maps tasks to
        their targets. Both are 0 in rows of tasks that have no such thing.
    """
    groups = [
        _Group(parts[name], rows, (soft_targets or {}).get(name))
        for name, rows in features.items()
    ]
    sizes = [len(group.features) for group in groups]
    lengths = np.concatenate([group.lengths for group in groups])
    max_length = max(part.max_length for part in parts.values())
    padded, windows = (
        [n for n in lengths_apart if n < max_length] + [max_length]
        for lengths_apart in (LENGTHS, WINDOWS if len(groups) > 1 else LENGTHS)
    )
    count = -(-sum(sizes) // batch_size)

    def batch(pass_number, place, indices):
        share = gold_weight(pass_number * count + place) if soft_targets else 1.0
        length = padded[np.searchsorted(padded, lengths[indices].max())]
        weights = (np.arange(batch_size) < len(indices)).astype("float32")
        indices = np.resize(indices, batch_size)
        task = np.searchsorted(np.cumsum(sizes), indices, side="right")
        own = indices - (np.cumsum(sizes) - sizes)[task]
        inputs, targets = {"task": task.astype("int32")}, {}
        for i, (name, group) in enumerate(zip(features, groups, strict=True)):
            rows = np.flatnonzero(task == i)
            empty, targets[name] = group.zeros(batch_size, length)
            inputs = {**empty, **inputs}
            if len(rows):
                read, learned = group.arrays(own[rows], length, share)
                for into, arrays in ((inputs, read), (targets[name], learned)):
                    for key, array in arrays.items():
                        into[key][rows] = array
        return inputs, targets, weights

    def plan_of(pass_number):
        rows = rows_of_pass(sizes, exponent, seed, pass_number)
        rng = np.random.default_rng((seed, pass_number))
        planned = plan(lengths[rows], batch_size, windows, rng)
        return [rows[indices] for indices, _ in planned]

    return passes(plan_of, batch, count, first_pass)


class _Group:
    """A task's features, and the arrays of some of them."""

    def __init__(self, part, features, soft_targets):
        self.features = features
        self.soft_targets = soft_targets
        self.of_tokens = part.soft_targets_of_tokens
        self.padding_id = part.padding_id
        self.lengths = np.array([len(f.inputs["token_ids"]) for f in features])
        if self.lengths.max() > part.max_length:
            raise ValueError(
                f"A feature has {self.lengths.max()} tokens, more than "
                f"max_length={part.max_length}."
            )
        self.first, self.longer = (
            self.arrays(np.array([0]), self.lengths[0] + more, 1.0) for more in (0, 1)
        )

    def arrays(self, indices, length, gold_weight):
        """Returns inputs and targets of some features."""
        inputs, targets, *_ = assemble(
            self.features, indices, len(indices), length, self.padding_id
        )
        if self.soft_targets:
            rows = [self.soft_targets[i] for i in indices]
            for name in rows[0]:
                teacher = [np.asarray(row[name]) for row in rows]
                if name in self.of_tokens:
                    teacher = [_padded(array, length) for array in teacher]
                targets[name] = mixed(targets[name], np.stack(teacher), gold_weight)
        return inputs, targets

    def zeros(self, batch_size, length):
        """Returns the inputs and targets of a batch without a row of the task."""

        def empty(first, longer):
            # Tokens are along the axis that has one more for one more of them.
            shape = [
                size if size == other else length
                for size, other in zip(first.shape[1:], longer.shape[1:], strict=True)
            ]
            return np.zeros((batch_size, *shape), first.dtype)

        return keras.tree.map_structure(empty, self.first, self.longer)


def _padded(array, length):
    rest = [(0, 0)] * (array.ndim - 1)
    return np.pad(array, [(0, length - len(array)), *rest])
