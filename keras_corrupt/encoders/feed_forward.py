"""The inside of a feed-forward network, between its two matrices."""

import keras
from keras import ops

from keras_corrupt.encoders.cost import dense_flops
from keras_corrupt.encoders.dense import Dense, activation_flops, gelu


@keras.saving.register_keras_serializable(package="keras_corrupt")
class GatedDense(Dense):
    """A gated linear unit, `activation(x V) * (x W)` (Shazeer, 2020, section 2).

    The kernel, `[inputs, 2 * units]`, is V and W side by side, as in ModernBERT.

    Args:
        units: Width of the output.
        kwargs: Arguments of `Dense`.

    Example:

    >>> import numpy as np
    >>> layer = GatedDense(3, activation="relu", kernel_initializer="ones")
    >>> np.array(layer(np.ones((1, 2), "float32"))).tolist()  # relu(2) * 2
    [[4.0, 4.0, 4.0]]
    """

    def __init__(self, units, *args, **kwargs):
        super().__init__(2 * units, *args, **kwargs)

    def activated(self, x):
        content, gate = ops.split(x, 2, axis=-1)
        return self.activation(content) * gate

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.units // 2)

    def quantize(self, *args, **kwargs):
        raise NotImplementedError("Keras has no quantized product with a gate.")

    def flops(self):
        """Counts one vector, forward: both products, the activation, the gate."""
        gated = (activation_flops(self.activation) + 1) * (self.units // 2)
        return dense_flops(*self.kernel.shape, self.use_bias) + gated

    @property
    def kept_numbers(self):
        """See `Dense`: both halves, and their product."""
        return 3 * self.units // 2

    def get_config(self):
        return {**super().get_config(), "units": self.units // 2}


def silu(approximate_gelu):
    """Returns the activation of SwiGLU, which plays no part in gelu's kinds."""
    return keras.activations.silu


#: `feed_forward` -> class of the inner layer, and what makes its activation of
#: `approximate_gelu`. GEGLU and SwiGLU: Shazeer, 2020, equation 6.
FEED_FORWARDS = {
    "gelu": (Dense, gelu),
    "geglu": (GatedDense, gelu),
    "swiglu": (GatedDense, silu),
}
