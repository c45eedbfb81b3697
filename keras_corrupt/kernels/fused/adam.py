"""Adam's update."""

import tensorflow as tf


def adam(variable, momentum, velocity, gradient, rate, beta_1, beta_2, epsilon):
    """As `plain.adam`, in one operation."""
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
        beta1_power=0.0,
        beta2_power=0.0,
    )
