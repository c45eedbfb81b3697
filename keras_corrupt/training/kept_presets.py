"""Models that are kept while a run goes on."""

import numpy as np

from keras_corrupt.devices.distribution import ONE_DEVICE


class KeptPresets:
    """Saves a model after some updates, as if the run had ended there.

    Args:
        model: A compiled `Pretrainer`.
        directory: Where to, a `Path`; each preset is `step-000001000` or so.
        keeps: Function of the updates so far that returns whether to save.
        distribution: The run's `Distribution`.
        also: Updates after which one more is saved, or `None`.
    """

    def __init__(self, model, directory, keeps, distribution=ONE_DEVICE, also=None):
        self.model, self.directory, self.keeps = model, directory, keeps
        self.distribution, self.also = distribution, also

    def on_interval_end(self, step, logs):
        """Saves the model, if it is time; called by `Intervals`."""
        if step != self.also and not self.keeps(step):
            return
        variables = self.model.trainable_variables
        weights = [np.array(variable) for variable in variables]
        # With a moving average, that is the result; training goes on without it.
        self.model.optimizer.finalize_variable_values(variables)
        path = self.directory / f"step-{step:09d}"
        self.distribution.in_all_processes(
            lambda: self.model.save_to_preset(path), first_only=True
        )
        for variable, value in zip(variables, weights, strict=True):
            variable.assign(value)
