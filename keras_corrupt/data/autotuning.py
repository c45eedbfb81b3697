"""Datasets whose iterators end at once."""

import tensorflow as tf


def without_autotuning(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Returns the dataset without the thread that tunes each of its iterators.

    Deleting an iterator cancels its thread and waits for it. But TensorFlow wakes the
    thread before it marks it as cancelled, so that it may go back to sleep, for about
    as long as the iterator was in use, at most a minute. Without the thread, `AUTOTUNE`
    is the number of cores.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)
