"""The dense layer of encoders and heads."""

import keras
from keras import ops

from keras_corrupt.devices.guests import replaceable
from keras_corrupt.encoders.cost import GELU_FLOPS, SILU_FLOPS, dense_flops


@keras.saving.register_keras_serializable(package="keras_corrupt")
def gelu_by_tanh(x):
    """Gelu's tanh approximation (Hendrycks and Gimpel, 2016)."""
    return ops.gelu(x, approximate=True)


def gelu(approximate):
    """Returns gelu or its tanh approximation, as a layer's activation."""
    return gelu_by_tanh if approximate else keras.activations.gelu


GELUS = gelu(True), gelu(False)


def activation_flops(activation):
    """Counts one number's activation; others than gelu and silu count nothing."""
    if activation in GELUS:
        return GELU_FLOPS
    return SILU_FLOPS * (activation is keras.activations.silu)


@keras.saving.register_keras_serializable(package="keras_corrupt")
class Dense(keras.layers.Dense):
    """A `keras.layers.Dense` that adds its bias and is activated in float32.

    Added in bfloat16, the bias would have its gradient added up in bfloat16 on some
    backends, and of the sum over some thousand tokens most would be lost.

    Args:
        units: Width of the output.
        remat: Whether the backward pass computes bias and activation again.
        kwargs: The other arguments of `keras.layers.Dense`.

    Example:

    >>> import numpy as np
    >>> layer = Dense(3, kernel_initializer="ones", activation=gelu(approximate=True))
    >>> np.array(layer(np.ones((1, 4), "float32"))).round(3).tolist()
    [[4.0, 4.0, 4.0]]
    """

    def __init__(self, *args, remat=False, **kwargs):
        super().__init__(*args, **kwargs)
        self.remat = remat

    @replaceable
    def call(self, inputs, training=None):
        again = training and self.remat
        from_products = keras.remat(self.from_products) if again else self.from_products
        return from_products(ops.matmul(inputs, self.kernel))

    def from_products(self, products):
        """Returns the output, from the products of inputs and weights."""
        shifted = ops.cast(products, "float32")
        if self.use_bias:
            shifted = shifted + ops.cast(self.bias, "float32")
        return ops.cast(self.activated(shifted), products.dtype)

    def activated(self, x):
        """Returns the output, float32, of the product with the bias added."""
        return self.activation(x)

    def quantize(self, mode=None, type_check=True, config=None):
        # Keras quantizes no subclass whose `call` might be another; ours is none.
        super().quantize(mode, type_check=False, config=config)

    def flops(self):
        """Counts one vector, forward: see `cost`."""
        activated = activation_flops(self.activation) * self.units
        return dense_flops(*self.kernel.shape, self.use_bias) + activated

    @property
    def kept_numbers(self):
        """How many numbers of a vector the activation's gradient reads."""
        return self.units
