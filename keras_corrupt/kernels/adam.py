"""Adam's update."""

import keras

from keras_corrupt.kernels import plain


def adam(variable, momentum, velocity, gradient, rate, beta_1, beta_2, epsilon):
    """Assigns what `plain.adam` returns to three variables.

    On TensorFlow one operation does it, which GPUs and XLA have, too. The operation has
    one type for all, so it cannot update 16 bits by averages of 32.
    """
    one_type = variable.dtype == momentum.dtype
    if keras.backend.backend() != "tensorflow" or not one_type:
        updated = plain.adam(
            variable, momentum, velocity, gradient, rate, beta_1, beta_2, epsilon
        )
        for old, new in zip((variable, momentum, velocity), updated, strict=True):
            old.assign(new)
        return
    import tensorflow as tf

    zero = tf.zeros((), variable.dtype)
    tf.raw_ops.ResourceApplyAdam(
        var=variable.handle,
        m=momentum.value.handle,
        v=velocity.value.handle,
        grad=gradient,
        lr=rate,
        beta1=beta_1,
        beta2=beta_2,
        epsilon=epsilon,
        # The bias correction is in the rate.
        beta1_power=zero,
        beta2_power=zero,
    )
