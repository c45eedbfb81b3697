"""What students are compared: the rows of the thesis's tables 3.1, 3.3 and 3.4."""

import dataclasses

from keras_corrupt.multitask.sampling import EXPONENT


@dataclasses.dataclass(frozen=True)
class Strategy:
    """How models are trained.

    Attributes:
        multi: Whether one model does all tasks, or each task has its own.
        teacher: The strategy whose models teach these; `None` for labels alone.
        start: The strategy whose model of the same seed is where these start; `None`
            for the pretrained encoder.
        gold_weight: With a teacher, the labels' share: `None` to anneal from 0 to 1.
        exponent: How a task's size decides how often it is drawn.
        settings: Settings that differ from those of other models of its kind.
    """

    multi: bool = False
    teacher: str | None = None
    start: str | None = None
    gold_weight: float | None = None
    exponent: float = EXPONENT
    settings: dict = dataclasses.field(default_factory=dict)

    @property
    def needs(self):
        """The strategies whose models these need."""
        return [name for name in (self.teacher, self.start) if name]


_FINE_TUNING = {"learning_rate": 1e-5}

#: Name -> strategy. Each stands below those that it needs.
STRATEGIES = {
    "single": Strategy(),
    "multi": Strategy(multi=True),
    "single_to_single": Strategy(teacher="single"),
    "multi_to_multi": Strategy(multi=True, teacher="multi"),
    "single_to_multi": Strategy(multi=True, teacher="single"),
    "single_to_multi_to_single": Strategy(teacher="single_to_multi"),
    "single_to_multi_to_single_to_multi": Strategy(
        multi=True, teacher="single_to_multi_to_single"
    ),
    # Table 3.3.
    "multi_then_single": Strategy(start="multi", settings=_FINE_TUNING),
    "single_to_multi_then_single": Strategy(
        start="single_to_multi", settings=_FINE_TUNING
    ),
    # Table 3.4.
    "no_layer_decay": Strategy(
        multi=True, teacher="single", settings={"layer_decay": 1.0}
    ),
    "no_task_sampling": Strategy(multi=True, teacher="single", exponent=1.0),
    "no_annealing_0": Strategy(multi=True, teacher="single", gold_weight=0.0),
    "no_annealing_0.5": Strategy(multi=True, teacher="single", gold_weight=0.5),
}


def with_those_needed(names):
    """Returns strategies and all that they need, in the order of `STRATEGIES`.

    Raises:
        ValueError: There is no such strategy.

    >>> with_those_needed(["single_to_multi"])
    ['single', 'single_to_multi']
    """
    if unknown := [name for name in names if name not in STRATEGIES]:
        raise ValueError(
            f"`strategies` has {unknown[0]!r}; known are {', '.join(STRATEGIES)}."
        )
    found, left = set(), list(names)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += STRATEGIES[name].needs
    return [name for name in STRATEGIES if name in found]
