"""The bounds of the numbers that a user gives."""

import dataclasses
import math
from typing import NamedTuple


class Bounds(NamedTuple):
    """From `low`, which is allowed unless `above`, to less than `high`.

    With `closed`, `high` is allowed, too.

    >>> print(Bounds(0, 1, above=True)), print(Bounds(8))
    above 0 and less than 1
    at least 8
    (None, None)
    """

    low: float
    high: float = math.inf
    above: bool = False
    closed: bool = False

    def allow(self, value):
        """Returns whether a value is a number within the bounds; NaN is in none."""
        if not isinstance(value, int | float):
            return False
        enough = value > self.low if self.above else value >= self.low
        return enough and (value <= self.high if self.closed else value < self.high)

    def __str__(self):
        text = f"{'above' if self.above else 'at least'} {self.low:,}"
        if self.high == math.inf:
            return text
        return f"{text} and {'at most' if self.closed else 'less than'} {self.high:,}"


def check_bounds(values, bounds, where="--"):
    """Raises a `ValueError` for a number outside its bounds; `None` is always allowed.

    Args:
        values: Dict. Name -> value; names that `bounds` lacks do not matter.
        bounds: Dict. Name -> `Bounds`.
        where: The text before their names in the error.
    """
    for name, allowed in bounds.items():
        value = values.get(name)
        if value is not None and not allowed.allow(value):
            raise ValueError(f"{where}{name} {value} must be {allowed}.")


def check_whole_numbers(config):
    """Raises a `ValueError` for a float, such as 1e6, where a whole number belongs.

    Args:
        config: A dataclass; the annotations `int` and `int | None` tell.
    """
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if field.type in (int, int | None) and isinstance(value, float):
            raise ValueError(
                f"--{field.name} {value} must be a whole number, such as 10, not 10.0."
            )
