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
        layer_decay: Factor of the learning rate from a layer to the one below it;
            `None` for the factor of other models of its kind.
        rate: Factor of the learning rate of other models of its kind.
    """

    multi: bool = False
    teacher: str | None = None
    start: str | None = None
    gold_weight: float | None = None
    exponent: float = EXPONENT
    layer_decay: float | None = None
    rate: float = 1.0


#: 1e-5 after 5e-5, the rate of large encoders (section 3.4).
_LOWER = 1 / 5

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
    "multi_then_single": Strategy(start="multi", rate=_LOWER),
    "single_to_multi_then_single": Strategy(start="single_to_multi", rate=_LOWER),
    # Table 3.4.
    "no_layer_decay": Strategy(multi=True, teacher="single", layer_decay=1.0),
    "no_task_sampling": Strategy(multi=True, teacher="single", exponent=1.0),
    "no_annealing_0": Strategy(multi=True, teacher="single", gold_weight=0.0),
    "no_annealing_0.5": Strategy(multi=True, teacher="single", gold_weight=0.5),
}


def settings_of(strategy, single, changes=None):
    """Returns the settings of a strategy's models.

    A model of all tasks is trained at twice the rate, for twice as many epochs and in
    batches four times as large, with layer-wise rates: of the settings for large
    encoders, 5e-5, 3 epochs and 32, that makes the thesis's 1e-4, 6 epochs and 128
    (3.3). For other sizes it is ours.

    Args:
        strategy: A `Strategy`.
        single: `FineTuningSettings` of a model of one task.
        changes: Settings of a model of all tasks that are other ones, a dict.

    >>> from keras_corrupt.models.fine_tuning import settings
    >>> settings_of(STRATEGIES["multi"], settings("large", "CoLA")).learning_rate
    0.0001
    """
    rate = strategy.rate * single.learning_rate
    if not strategy.multi:
        return dataclasses.replace(single, learning_rate=rate)
    settings = dataclasses.replace(
        single,
        learning_rate=2 * rate,
        epochs=2 * single.epochs,
        batch_size=4 * single.batch_size,
        layer_decay=0.9,
    ).changed(changes or {})
    if strategy.layer_decay is None:
        return settings
    return dataclasses.replace(settings, layer_decay=strategy.layer_decay)


def with_those_needed(names, teachers=True):
    """Returns strategies and all that they need, in the order of `STRATEGIES`.

    Args:
        names: Their names.
        teachers: Whether they need their teachers; `False` where files have what those
            put out.

    Raises:
        ValueError: There is no such strategy.

    >>> with_those_needed(["single_to_multi"])
    ['single', 'single_to_multi']
    """
    if unknown := [name for name in names if name not in STRATEGIES]:
        raise ValueError(
            f"`strategies` has {unknown[0]!r}; known are {', '.join(STRATEGIES)}."
        )
    needed, left = set(), list(names)
    while left:
        name = left.pop()
        if name not in needed:
            needed.add(name)
            strategy = STRATEGIES[name]
            left += [strategy.teacher] * (teachers and strategy.teacher is not None)
            left += [strategy.start] * (strategy.start is not None)
    return [name for name in STRATEGIES if name in needed]
