"""How many threads may compute at once."""

import tensorflow as tf

from keras_corrupt.devices.cpus import available_cpus


def thread_count():
    """Returns how many threads the kernels use, the caller's included.

    That is as many as TensorFlow's own operations are allowed by
    `tf.config.threading.set_intra_op_parallelism_threads`, but not more than there
    are processors for this process.
    """
    available = available_cpus()
    allowed = tf.config.threading.get_intra_op_parallelism_threads()
    return min(available, allowed or available)
