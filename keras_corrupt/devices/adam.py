"""Adam's update."""

import keras
from keras import ops


def adam_update(variable, momentum, velocity, gradient, rate, beta_1, beta_2, epsilon):
    """Returns a new variable and its two moments (Kingma and Ba, 2015, algorithm 1).

    Args:
        variable: An array of any shape.
        momentum: An array of that shape, the gradient's moving average.
        velocity: The same of its square.
        gradient: An array of that shape.
        rate: The learning rate; its bias correction, if any, is in it.
        beta_1: Decay of the first average.
        beta_2: Decay of the second.
        epsilon: Added to the root of `velocity`.
    """
    momentum = momentum + (gradient - momentum) * (1.0 - beta_1)
    velocity = velocity + (ops.square(gradient) - velocity) * (1.0 - beta_2)
    step = rate * momentum / (ops.sqrt(velocity) + epsilon)
    return variable - step, momentum, velocity


def adam(variable, momentum, velocity, gradient, rate, beta_1, beta_2, epsilon):
    """Assigns what `adam_update` returns to three variables.

    On TensorFlow one operation does it, which GPUs and XLA have, too. The operation has
    one type for all, so it cannot update 16 bits by averages of 32.
    """
    one_type = variable.dtype == momentum.dtype
    if keras.backend.backend() != "tensorflow" or not one_type:
        updated = adam_update(
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
