"""What values the numbers of a pretraining run may have."""

import math
from typing import NamedTuple

from keras_corrupt.data.examples import MIN_LENGTH


class Bounds(NamedTuple):
    """From `low`, which is allowed unless `above`, to less than `high`."""

    low: float
    high: float = math.inf
    above: bool = False

    def allow(self, value):
        """Whether a value is a number within the bounds; NaN is in none."""
        if not isinstance(value, int | float):
            return False
        enough = value > self.low if self.above else value >= self.low
        return enough and value < self.high

    def __str__(self):
        text = f"{'above' if self.above else 'at least'} {self.low:,}"
        return text if self.high == math.inf else f"{text} and less than {self.high:,}"


#: Field of `PretrainConfig` -> its bounds. All are finite; `None` is always allowed.
BOUNDS = {
    "vocabulary_size": Bounds(1, 10_000_000),
    "grow_vocabulary": Bounds(0),
    "validation_fraction": Bounds(0, 1, above=True),
    "workers": Bounds(1),
    "sequence_length": Bounds(MIN_LENGTH),
    "batch_size": Bounds(1),
    "steps": Bounds(1),
    "generator_steps": Bounds(0),
    "learning_rate": Bounds(0, above=True),
    "warmup_steps": Bounds(0),
    "weight_decay": Bounds(0),
    "beta_1": Bounds(0, 1),
    "beta_2": Bounds(0, 1),
    "epsilon": Bounds(0, above=True),
    "clip_norm": Bounds(0),
    "accumulate": Bounds(1),
    "at_once": Bounds(1),
    "ema": Bounds(0, 1),
    "seed": Bounds(0, 2**32),
    "interval": Bounds(1),
    "validation_batches": Bounds(1),
    "keep_presets": Bounds(0),
    "processes": Bounds(1),
}


def check_bounds(values, where="--", bounds=BOUNDS):
    """Raises a `ValueError` for a number outside its bounds.

    Args:
        values: An object with some of the attributes that `bounds` names.
        where: What precedes their names in the error.
        bounds: Dict. Name -> `Bounds`.
    """
    for name, allowed in bounds.items():
        value = getattr(values, name, None)
        if value is not None and not allowed.allow(value):
            raise ValueError(f"{where}{name} {value} must be {allowed}.")
