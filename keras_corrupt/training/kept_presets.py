"""Models that are kept while a run goes on."""

import numpy as np

from keras_corrupt.devices.distribution import ONE_DEVICE


class KeptPresets:
    """Saves a model every so many updates, as if the run had ended there.

    Args:
        model: A compiled `Pretrainer`.
        directory: Where to, a `Path`; each preset is `step-000001000` or so.
        every: Updates from one to the next, a multiple of the interval; 0 for none.
        distribution: The run's `Distribution`.
        also: Updates after which one more is saved, or `None`.
    """

    def __init__(self, model, directory, every, distribution=ONE_DEVICE, also=None):
        self.model, self.directory, self.every = model, directory, every
        self.distribution, self.also = distribution, also

    def on_interval_end(self, step, logs):
        """Saves the model, if it is time; called by `Intervals`."""
        if step != self.also and (not self.every or step % self.every):
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
