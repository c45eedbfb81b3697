"""SGD with momentum, as Cross-View Training uses it (Clark's thesis, 4.3.1)."""

import keras

from keras_corrupt.training.optimizer import dense


@keras.saving.register_keras_serializable(package="keras_corrupt")
class SGD(keras.optimizers.SGD):
    """`keras.optimizers.SGD` with the same norm of the gradient on every backend.

    A token that occurs twice in a batch counts as one gradient where norms are clipped.
    """

    def apply(self, grads, trainable_variables=None):
        grads = dense(grads, trainable_variables or self._trainable_variables)
        super().apply(grads, trainable_variables)
