"""Muon for the matrices of the layers (Jordan et al., 2024), AdamW for the rest.

Keller Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024;
Liu et al., "Muon is Scalable for LLM Training", 2025 (Moonlight), for the scale.
"""

import re

import keras
from keras import ops

from keras_corrupt.training.optimizer import AdamW

#: Coefficients of an iteration, and how many there are.
COEFFICIENTS, ITERATIONS = (3.4445, -4.7750, 2.0315), 5
#: Root mean square of an update over its rate: about Adam's, so that both have the same
#: rate and weight decay (Moonlight, 2.2).
SCALE = 0.2


@keras.saving.register_keras_serializable(package="keras_corrupt")
class Muon(AdamW):
    """Momentum made orthogonal for the matrices of layers, and AdamW for the rest.

    With a matrix W of `[n, m]`, its gradient G and its momentum M, an update is

        M = momentum * M + G
        N = G + momentum * M
        W = W - rate * (decay * W + 0.2 * sqrt(max(n, m)) * orthogonal(N))

    `keras.optimizers.Muon` computes the same update of a matrix. Unlike it, and as
    `AdamW` does, this class clips by the norm over all replicas, counts a token that
    occurs twice as one gradient, and knows which variables are not decayed.

    Args:
        learning_rate: See `AdamW`.
        momentum: Decay of a matrix's momentum.
        matrices: Pattern of the paths of variables that are such matrices, if they have
            two axes. Embeddings and the layers of heads belong to the rest.
        kwargs: Arguments of `AdamW`.

    Example:

    >>> optimizer = Muon(1e-3, weight_decay=0.1, global_clipnorm=1.0)
    """

    #: Matrices of one shape are stacked, so that no array is flat.
    flat_variables = ()

    def __init__(
        self,
        learning_rate=1e-3,
        momentum=0.95,
        matrices=r"(^|/)layer_\d+/.*kernel$",
        name="muon",
        **kwargs,
    ):
        super().__init__(learning_rate, name=name, **kwargs)
        self.momentum = momentum
        self.matrices = matrices

    def build(self, variables):
        if not self.built:
            self._are_matrices = [self.is_matrix(variable) for variable in variables]
        super().build(variables)

    def is_matrix(self, variable):
        """Returns whether a variable is a matrix of a layer."""
        return len(variable.shape) == 2 and bool(
            re.search(self.matrices, variable.path)
        )

    def add_variable_from_reference(self, reference_variable, name=None, **kwargs):
        if name == "velocity" and self.is_matrix(reference_variable):
            return None  # Adam alone has it.
        return super().add_variable_from_reference(reference_variable, name, **kwargs)

    def _backend_update_step(self, grads, trainable_variables, learning_rate):
        rest, of_shape = ([], []), {}
        for gradient, variable in zip(grads, trainable_variables, strict=True):
            index = self._get_variable_index(variable)
            if self._are_matrices[index]:
                same = of_shape.setdefault(tuple(variable.shape), [])
                same.append((index, variable, gradient))
            else:
                rest[0].append(gradient)
                rest[1].append(variable)
        super()._backend_update_step(*rest, learning_rate)
        rate = ops.cast(learning_rate, "float32")
        for shape, same in of_shape.items():
            # One product multiplies all matrices of a shape: fewer products are faster.
            updates = orthogonal(ops.stack([self._ahead(i, g) for i, _, g in same]))
            updates = SCALE * max(shape) ** 0.5 * updates
            for number, (index, variable, _) in enumerate(same):
                change = updates[number] + self._decays[index] * variable
                change = rate * self._multipliers[index] * change
                self.assign_sub(variable, ops.cast(change, variable.dtype))

    def _ahead(self, index, gradient):
        """Updates a momentum; returns Nesterov's, which is one update ahead."""
        momentum = self._momentums[index]
        gradient = ops.cast(gradient, momentum.dtype)
        momentum.assign(self.momentum * momentum + gradient)
        return gradient + self.momentum * momentum

    def get_config(self):
        own = {"momentum": self.momentum, "matrices": self.matrices}
        return {**super().get_config(), **own}


def orthogonal(matrices):
    """Returns matrices whose singular values are all about 1, by Newton and Schulz.

    Singular vectors stay as they are. The iterations do not converge: the singular
    values of the result are from 0.7 to 1.2. Smaller ones remain where the input's are
    hundreds of times below its largest.

    Args:
        matrices: Float `[..., n, m]`.

    Returns:
        The same shape.

    Example:

    >>> import numpy as np
    >>> x = orthogonal(np.diag([2.0, -5.0]).astype("float32"))
    >>> np.sign(np.array(x).round(3)).tolist()
    [[1.0, 0.0], [0.0, -1.0]]
    """
    x = ops.convert_to_tensor(matrices)
    is_tall = x.shape[-2] > x.shape[-1]  # The smaller product is enough.
    x = ops.swapaxes(x, -2, -1) if is_tall else x
    norm = ops.sqrt(ops.sum(ops.square(x), axis=(-2, -1), keepdims=True))
    x = x / (norm + 1e-7)
    a, b, c = COEFFICIENTS
    for _ in range(ITERATIONS):
        square = ops.matmul(x, ops.swapaxes(x, -2, -1))
        x = a * x + ops.matmul(b * square + c * ops.matmul(square, square), x)
    return ops.swapaxes(x, -2, -1) if is_tall else x


#: `--optimizer` -> class.
OPTIMIZERS = {"adamw": AdamW, "muon": Muon}
