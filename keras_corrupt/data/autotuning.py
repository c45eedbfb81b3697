"""Datasets whose iterators end at once."""

import tensorflow as tf


def without_autotuning(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Returns the dataset without the thread that tunes each of its iterators.

    Deleting an iterator stops its thread, but TensorFlow may wake the thread before it
    says so. The thread then sleeps again and the deletion waits for it: about as long
    as the iterator was in use, at most a minute. Without it, `AUTOTUNE` is the number
    of cores.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)
