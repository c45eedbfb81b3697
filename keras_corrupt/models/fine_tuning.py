"""How an encoder is fine-tuned: a run's settings, and Clark's thesis's.

The thesis (section 5.2.4, table 5.2) fine-tunes ELECTRA and BERT alike. `Electra`,
`MaskedLM` and every system that brings no settings have its settings: see
`Pretrainer.fine_tuning`. A paper that has others has a file, such as
`coco_lm_fine_tuning.py`.
"""

import dataclasses
from typing import Literal, get_args

from keras_corrupt.commands.bounds import Bounds
from keras_corrupt.models.sizes import ENCODERS

#: Setting -> its bounds.
BOUNDS = {
    "learning_rate": Bounds(0, above=True),
    "epochs": Bounds(1),
    "batch_size": Bounds(1, 65536, closed=True),
    "layer_decay": Bounds(0, 1, above=True, closed=True),
    "warmup_fraction": Bounds(0, 1),
    "weight_decay": Bounds(0),
    "beta_2": Bounds(0, 1),
    "clip_norm": Bounds(0),
    "dropout": Bounds(0, 1),
}


@dataclasses.dataclass(frozen=True)
class FineTuningSettings:
    """The settings of a fine-tuning run.

    Attributes:
        learning_rate: Peak learning rate.
        epochs: Passes over the training examples.
        batch_size: Sequences in an update.
        layer_decay: Factor of the learning rate from a layer to the one below it.
        layer_decay_rule: `"paper"`: the head learns at the full rate, the top layer
            at `layer_decay` times that. `"released"`: ELECTRA's released code, in
            which the top layer gets the factor squared.
        warmup_fraction: Fraction of the updates in which the rate rises.
        weight_decay: Decoupled weight decay.
        beta_2: Decay of the second moment's average.
        bias_correction: Whether Adam's averages are corrected for starting at zero.
        clip_norm: Largest norm of the gradient; 0 for any.
        dropout: Dropout rate of encoder, attention and head; None for the rate with
            which the encoder was pretrained, 0.1 in the papers.
        report: Whether the last epoch or the best one gives a run's score.

    Raises:
        ValueError: A setting is out of its bounds, or of another type.
    """

    learning_rate: float
    epochs: int
    batch_size: int = 32
    layer_decay: float = 1.0
    layer_decay_rule: Literal["paper", "released"] = "paper"
    warmup_fraction: float = 0.1
    weight_decay: float = 0.0
    beta_2: float = 0.999
    bias_correction: bool = True
    clip_norm: float = 1.0
    dropout: float | None = None
    report: Literal["last", "best"] = "last"

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name in BOUNDS:
                expected = BOUNDS[field.name]
                right = value is None or expected.allow(value)
                right &= isinstance(value, (int, field.type))
                if field.type is int:
                    expected = f"a whole number, {expected}"
            else:
                choices = get_args(field.type) or (True, False)
                right, expected = value in choices, " or ".join(map(str, choices))
            if not right:
                raise ValueError(f"`{field.name}` must be {expected}; got {value!r}.")

    def changed(self, changes):
        """Returns the settings with some changed, as a command line gives them.

        Args:
            changes: Name -> value, a number or a string.

        Raises:
            ValueError: No such setting, or not a value of it.

        >>> settings("small", "RTE").changed({"epochs": "5", "report": "best"}).epochs
        5
        """
        fields = {field.name: field for field in dataclasses.fields(self)}
        if unknown := sorted(changes.keys() - fields.keys()):
            raise ValueError(
                f"there is no setting {', '.join(unknown)}; known are "
                f"{', '.join(fields)}."
            )
        return dataclasses.replace(
            self, **{n: _read(value, fields[n].type) for n, value in changes.items()}
        )


def _read(value, kind):
    """Returns a value as its field's type, or as it is where it is none of that."""
    if kind is bool:
        return {"true": True, "1": True, "false": False, "0": False}.get(
            str(value).lower(), value
        )
    kind = float if kind == float | None else kind
    if kind not in (int, float):
        return value
    try:
        number = float(value)
    except ValueError:
        return value
    return int(number) if kind is int and number.is_integer() else number


def size_of(encoder):
    """Returns the name of the size that an encoder is nearest to, by its width.

    It is the first of `ENCODERS` that is as wide as the encoder, or else `"large"`.
    """
    for size, sizes in ENCODERS.items():
        if encoder.hidden_size <= sizes["hidden_size"]:
            return size
    return "large"


def is_squad(task):
    """Returns whether a task of this name is one of SQuAD's."""
    return task.startswith("squad")


def settings(size, task):
    """Returns the thesis's settings for a task (table 5.2).

    Args:
        size: `"tiny"` (ours: a higher rate, more epochs), `"small"`, `"base"` or
            `"large"`.
        task: The task's name.

    >>> settings("base", "RTE").epochs, settings("base", "squad11").epochs
    (10, 2)
    """
    rates = {"tiny": 1e-3, "small": 3e-4, "base": 1e-4, "large": 5e-5}
    decays = {"tiny": 1.0, "small": 0.8, "base": 0.8, "large": 0.9}
    if is_squad(task):
        epochs = 5 if size == "tiny" else 2
    else:
        epochs = 10 if size == "tiny" or task in ("RTE", "STS-B") else 3
    return FineTuningSettings(
        learning_rate=rates[size],
        epochs=epochs,
        layer_decay=decays[size],
        # As released; the thesis does not say. Short runs at a high rate need it.
        bias_correction=size == "tiny",
    )


def search_space(size, task):
    """Returns what the thesis searched (5.2.4): setting -> values.

    Args:
        size: See `settings`.
        task: See `settings`.
    """
    if size == "large":
        return {"epochs": (2,) if is_squad(task) else (10, 3)}
    if size == "base":
        return {
            "learning_rate": (3e-5, 5e-5, 1e-4, 1.5e-4),
            "layer_decay": (0.9, 0.8, 0.7),
        }
    # The thesis prints 5e-3 as the last, among [1e-4, 2e-4, 3e-4, 5e-3].
    return {"learning_rate": (1e-4, 2e-4, 3e-4, 5e-3)}
