"""Adam's update."""

import keras
from keras import ops


def adam(variable, momentum, velocity, gradient, rate, beta_1, beta_2, epsilon):
    """Updates a variable and its two moments (Kingma and Ba, 2015, algorithm 1).

    On TensorFlow in one operation, which GPUs and XLA have, too. The operation has one
    type for all, so it cannot update 16 bits by averages of 32.

    Args:
        variable: A variable of any shape.
        momentum: A variable of that shape, the gradient's moving average.
        velocity: The same of its square.
        gradient: An array of that shape.
        rate: The learning rate; its bias correction, if any, is in it.
        beta_1: Decay of the first average.
        beta_2: Decay of the second.
        epsilon: Added to the root of `velocity`.
    """
    one_type = variable.dtype == momentum.dtype
    if keras.backend.backend() != "tensorflow" or not one_type:
        momentum.assign(momentum + (gradient - momentum) * (1.0 - beta_1))
        velocity.assign(velocity + (ops.square(gradient) - velocity) * (1.0 - beta_2))
        variable.assign(variable - rate * momentum / (ops.sqrt(velocity) + epsilon))
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
