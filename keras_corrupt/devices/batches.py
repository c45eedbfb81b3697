"""Batches of NumPy arrays, as training reads them on every backend."""

import contextlib
import itertools

import keras


class Batches(keras.utils.PyDataset):
    """Batches that are made one by one, when they are asked for.

    Args:
        batch: Function of a number, from 0 on, that returns a batch: NumPy arrays,
            or dicts and tuples of them.
        count: The number of batches; `None` for no end.
        varying: Axes in which batches differ in size.

    >>> import numpy as np
    >>> batches = Batches(lambda number: np.full((2, 3), number), count=4)
    >>> [int(batch.sum()) for batch in batches.take(3)]
    [0, 6, 12]
    """

    def __init__(self, batch, count=None, varying=()):
        super().__init__()
        self.batch, self.count, self.varying = batch, count, varying

    def __getitem__(self, number):
        if not 0 <= number < (number + 1 if self.count is None else self.count):
            raise IndexError(number)
        return self.batch(number)

    def __len__(self):
        if self.count is None:
            raise TypeError("These batches have no end.")
        return self.count

    @property
    def num_batches(self):
        """The number of batches, for Keras."""
        return self.count

    def take(self, count):
        """Returns the first batches, as many as `count` at most."""
        count = count if self.count is None else min(count, self.count)
        return Batches(self.batch, count, self.varying)

    def map(self, function, varying=None):
        """Returns the results of `function` for each batch.

        Args:
            function: Function of a batch.
            varying: Axes in which its results differ in size; as here if not given.
        """
        varying = self.varying if varying is None else varying
        return Batches(lambda number: function(self.batch(number)), self.count, varying)

    def kept(self):
        """Returns the same batches, all made now and kept in memory."""
        batches = list(self)
        return Batches(batches.__getitem__, len(batches), self.varying)


@contextlib.contextmanager
def fed(batches):
    """Yields an input of `fit` for `batches`; their errors come out as they are raised.

    On TensorFlow Keras would make a `tf.data.Dataset` of them. We make it, with known
    sizes, and without the thread that tunes each iterator. Deleting an
    iterator waits for this thread, which TensorFlow wakes before it marks the thread as
    cancelled, so that it may sleep again, for a minute at most.

    Args:
        batches: `Batches`; anything else is yielded as it is.
    """
    if not isinstance(batches, Batches) or keras.backend.backend() != "tensorflow":
        yield batches
        return
    import tensorflow as tf

    failures, looked_at = [], [batches[0]]

    def generate():
        count = batches.count
        try:
            for number in itertools.count() if count is None else range(count):
                yield looked_at.pop() if looked_at else batches[number]
        except Exception as error:
            failures.append(error)
            raise

    def specification(array):
        shape = [
            None if axis in batches.varying else size
            for axis, size in enumerate(array.shape)
        ]
        return tf.TensorSpec(shape, array.dtype)

    options = tf.data.Options()
    options.autotune.enabled = False
    signature = tf.nest.map_structure(specification, looked_at[0])
    dataset = tf.data.Dataset.from_generator(generate, output_signature=signature)
    if batches.count is not None:
        counted = tf.data.experimental.assert_cardinality(batches.count)
        dataset = dataset.apply(counted)
    try:
        yield dataset.prefetch(2).with_options(options)
    except Exception as error:
        if failures:
            raise failures[0] from error
        raise
