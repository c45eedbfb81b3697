"""Gradients of a model as vectors, on every backend."""

import keras
import numpy as np
from keras import ops

from keras_corrupt.training.optimizer import dense


class GradientRecorder(keras.optimizers.Optimizer):
    """An optimizer that keeps the gradients and changes nothing else."""

    def build(self, variables):
        if not self.built:
            super().build(variables)
            self.gradients = self.add_optimizer_variables(variables, "gradient")

    def apply(self, grads, trainable_variables=None):
        super().apply(dense(grads, self.gradients), trainable_variables)

    def update_step(self, gradient, variable, learning_rate):
        self.assign(self.gradients[self._get_variable_index(variable)], gradient)


class GradientOf:
    """Computes the gradient of a pretraining model's loss.

    The model is compiled for it; its weights stay as they are.

    Args:
        model: A `Pretrainer`, built. Dropout, if it has any, is active.

    Example:

    >>> import keras_corrupt
    >>> model = keras_corrupt.models.MaskedLM.from_preset("tiny")
    >>> gradient = GradientOf(model)({"token_ids": np.array([[101, 7, 8, 9, 102]])})
    >>> gradient.shape == (model.count_params(),)
    True
    """

    def __init__(self, model):
        self.model = model
        self._recorder = GradientRecorder(learning_rate=0.0)
        model.compile(optimizer=self._recorder, jit_compile=False)

    def __call__(self, inputs):
        """Returns the gradient over all trainable weights, float32 `[weights]`.

        Args:
            inputs: The model's inputs, NumPy arrays `[batch, length]`.
        """
        self.model.train_on_batch(inputs)
        # On JAX the step's results reach the variables when they are asked for.
        return np.concatenate(
            [np.ravel(ops.convert_to_numpy(g)) for g in self._recorder.gradients]
        )
