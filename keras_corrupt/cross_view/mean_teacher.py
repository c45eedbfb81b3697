"""Targets from an average of the weights (Clark's thesis, 4.5).

Mean Teacher (Tarvainen and Valpola, 2017): the model that makes the targets has the
exponential moving average of the weights that learn from them.
"""

import contextlib

import keras
from keras import ops


class MeanTeacher(keras.layers.Layer):
    """The average of a model's weights, with which the model can compute.

    Args:
        model: A built `CrossViewModel`. Its auxiliary modules make no targets, and
            are not averaged.
        momentum: The part of the average that an update keeps. The first updates keep
            less: the average is the mean of all weights so far.
    """

    def __init__(self, model, momentum, **kwargs):
        super().__init__(trainable=False, **kwargs)
        self.momentum = momentum
        self.updates = self.add_weight(
            shape=(), initializer="zeros", dtype="int32", name="updates"
        )
        self.averages = [
            self.add_weight(
                shape=variable.shape,
                initializer="zeros",
                dtype=variable.dtype,
                aggregation="only_first_replica",
                name=f"average_{number}",
            )
            for number, variable in enumerate(followed(model))
        ]
        self.built = True

    def update(self, model):
        """Averages the model's weights of this update into those so far."""
        self.updates.assign(self.updates + 1)
        new = 1.0 / ops.cast(self.updates, "float32")
        new = ops.maximum(new, 1.0 - self.momentum)
        for average, variable in zip(self.averages, followed(model), strict=True):
            change = ops.convert_to_tensor(variable) - average
            average.assign(average + ops.cast(new, average.dtype) * change)

    @contextlib.contextmanager
    def in_place_of(self, model):
        """Gives the model the average of its weights for the computations inside."""
        pairs = zip(followed(model), self.averages, strict=True)
        average_of = {id(variable): average for variable, average in pairs}
        values = [
            (variable, ops.convert_to_tensor(average_of.get(id(variable), variable)))
            for variable in model.variables
        ]
        with keras.StatelessScope(values):
            yield


def followed(model):
    """Returns the weights by which a model predicts."""
    return [
        variable
        for network in model.networks.values()
        for variable in network.trainable_variables
    ]
