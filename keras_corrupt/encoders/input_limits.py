"""Limits of what a model reads, checked on the host before a step looks ids up.

The look-up itself checks nothing: for an id above its table JAX reads NaN and
TensorFlow on a GPU reads zeros, and for -1 JAX reads the last row. Neither does a loss:
JAX gives a target that is no label's number the loss 0.
"""

import types
from collections.abc import Mapping
from typing import NamedTuple

import keras
import numpy as np

from keras_corrupt.devices.batches import Batches


class InputLimits(NamedTuple):
    """What a model can read.

    Attributes:
        vocabulary_size: Number of token ids.
        num_segments: Number of segment ids.
        max_length: Number of positions.
        num_labels: Number of labels, where targets are the labels' numbers; else 0.
    """

    vocabulary_size: int
    num_segments: int
    max_length: int
    num_labels: int = 0

    def checked(self, batches):
        """Returns batches whose ids, lengths and targets are checked.

        Args:
            batches: Arrays that `text_inputs` takes, alone or in a tuple before their
                targets, which are checked now; or `Batches`, a generator, a
                `PyDataset` or a `tf.data.Dataset` of such, which are checked as they
                are read. Other kinds are returned as they are.

        Raises:
            ValueError: Arrays have an id or a length that the model cannot read, or
                the number of no label. A dataset raises TensorFlow's
                `InvalidArgumentError`.
        """
        if isinstance(batches, Batches):
            return batches.map(self.checked)
        if isinstance(batches, types.GeneratorType):
            return (self.checked(batch) for batch in batches)
        if isinstance(batches, keras.utils.PyDataset):
            return _Checked(batches, self.checked)
        if hasattr(batches, "element_spec") and hasattr(batches, "map"):
            return batches.map(self._checked_tensors).prefetch(1)
        batch = batches if isinstance(batches, tuple) else (batches,)
        for array, limit, message in self._limited(batch, np.shape):
            array = np.asarray(array)
            if array.size and not 0 <= array.min() <= array.max() < limit:
                wrong = array.min() if array.min() < 0 else array.max()
                raise ValueError(f"{message} Got {wrong}.")
        return batches

    def _checked_tensors(self, *batch):
        import tensorflow as tf

        for tensor, limit, message in self._limited(batch, tf.shape):
            tensor = tf.cast(tensor, tf.int64)
            low, high = tf.reduce_min(tensor), tf.reduce_max(tensor)
            within = tf.logical_and(low >= 0, high < limit)
            tf.debugging.Assert(within, [f"{message} Got from", low, "to", high])
        return batch if len(batch) > 1 else batch[0]

    def _limited(self, batch, shape_of):
        """Yields what must be from 0 to below a limit: numbers, limit, message."""
        inputs, targets = (*batch, None)[:2]
        arrays = inputs if isinstance(inputs, Mapping) else {"token_ids": inputs}
        for name, limit, remedy in (
            ("token_ids", self.vocabulary_size, "Make them with its tokenizer."),
            ("segment_ids", self.num_segments, "It has no more segments."),
        ):
            if is_integers(arrays.get(name)):
                last = f"from 0 to {limit - 1}"
                yield arrays[name], limit, f"`{name}` of the model are {last}. {remedy}"
        if is_integers(arrays.get("token_ids")):
            yield (
                shape_of(arrays["token_ids"])[1],
                self.max_length + 1,
                f"`token_ids` may have a length of max_length={self.max_length} at "
                "most. Cut the sequences, or make a model of a larger one.",
            )
        targets = targets.get("label") if isinstance(targets, Mapping) else targets
        is_column = is_integers(targets) and targets.shape[1] == 1
        if self.num_labels and (is_column or is_integers(targets, rank=1)):
            yield (
                targets,
                self.num_labels,
                "Targets in batches are places in `labels`, from 0 to "
                f"{self.num_labels - 1}. Give these places, or give `fit` arrays.",
            )


class _Checked(keras.utils.PyDataset):
    """A user's `PyDataset`, whose batches are checked as they are read."""

    def __init__(self, dataset, check):
        super().__init__(
            dataset.workers, dataset.use_multiprocessing, dataset.max_queue_size
        )
        self.dataset, self.check = dataset, check

    @property
    def num_batches(self):
        return self.dataset.num_batches

    def __getitem__(self, number):
        return self.check(self.dataset[number])

    def on_epoch_begin(self):
        self.dataset.on_epoch_begin()

    def on_epoch_end(self):
        self.dataset.on_epoch_end()


#: For a model without `TextEmbeddings`.
UNLIMITED = InputLimits(2**31, 2**31, 2**31)


def is_integers(array, rank=2):
    """Returns whether an array, of a rank, is of a type that can hold token ids."""
    shape = getattr(array, "shape", ())
    own_rank = shape.rank if hasattr(shape, "rank") else len(shape)  # or not known
    if own_rank != rank or hasattr(array, "row_lengths"):
        return False
    kind = type_name(array)
    return kind.startswith(("int", "uint", "bool")) or kind in ("float32", "float64")


def type_name(array):
    """Returns the name of an array's type, whichever library's the array is."""
    return str(getattr(array.dtype, "name", array.dtype))
