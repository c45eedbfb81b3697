"""The head that makes a text's vector of [CLS] (Meng et al., 2021, released code)."""

import keras

from keras_corrupt.heads.transform import transform_and_norm, transform_flops


class SequenceHead(keras.layers.Layer):
    """A linear layer, gelu and layer norm, through which released code reads [CLS].

    Args:
        encoder: The `TransformerEncoder` whose output it reads.
    """

    def __init__(self, encoder, **kwargs):
        super().__init__(**kwargs)
        self.transform, self.norm = transform_and_norm(
            encoder, encoder.hidden_size, self.dtype_policy
        )
        self.build((None, encoder.hidden_size))

    def build(self, input_shape):
        self.transform.build(input_shape)
        self.norm.build(input_shape)

    def call(self, states):
        """Returns vectors `[..., hidden]`, from `[..., hidden]`."""
        return self.norm(self.transform(states))

    def flops(self):
        """Counts one vector, forward."""
        return transform_flops(self.transform)
