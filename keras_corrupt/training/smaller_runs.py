"""What a recipe changes in a run that is smaller than its paper's.

With beta_2 0.999 Adam's second moment remembers a thousand updates, in which the
gradient of a short run becomes many times smaller. Deep detectors have died of it, and
of rates that were chosen for larger batches: see benchmarks/results/collapse. And a
warm-up that is meant for a million updates would be most of a short run.
"""

import dataclasses
import math

#: The largest beta_2 of a run that is shorter than its recipe's.
SHORT_MEMORY = 0.98
#: The largest share of its updates in which its rate rises.
LONGEST_WARM_UP = 0.1


def of_smaller_run(config, recipe, given):
    """Lowers rate, beta_2 and warm-up in a run that is smaller than its recipe.

    Adam's rate goes with the root of the batch's size: Malladi et al., "On the SDEs and
    Scaling Rules for Adaptive Gradient Algorithms", NeurIPS 2022.

    Args:
        config: A `PretrainConfig`, read from flags.
        recipe: The recipe's `PretrainConfig`, the flags' defaults.
        given: Names of the flags that were given.

    Returns:
        A `PretrainConfig`.

    >>> from keras_corrupt.training import PretrainConfig
    >>> recipe = PretrainConfig(
    ...     "Electra", "small", "run", steps=1000, batch_size=128, sequence_length=128,
    ...     learning_rate=8e-4, warmup_steps=50, beta_2=0.999)
    >>> flags = dict(steps=100, batch_size=32)
    >>> smaller = of_smaller_run(dataclasses.replace(recipe, **flags), recipe, flags)
    >>> smaller.learning_rate, smaller.beta_2, smaller.warmup_steps
    (0.0004, 0.98, 10)
    """
    lower = {}
    if config.steps < recipe.steps:
        lower["beta_2"] = min(config.beta_2, SHORT_MEMORY)
        warm_up = int(LONGEST_WARM_UP * config.steps)
        lower["warmup_steps"] = min(config.warmup_steps, warm_up)
    if 0 < tokens(config) < tokens(recipe):
        share = math.sqrt(tokens(config) / tokens(recipe))
        lower["learning_rate"] = float(f"{config.learning_rate * share:.3g}")
    lower = {name: value for name, value in lower.items() if name not in given}
    return dataclasses.replace(config, **lower)


def tokens(config):
    """Returns the tokens of a step, 0 if the data will decide."""
    return config.batch_size * config.sequence_length


def note(config, recipe, given):
    """Returns a line about what `of_smaller_run` changed, an empty text if nothing.

    Args:
        config: See `of_smaller_run`.
        recipe: See `of_smaller_run`.
        given: See `of_smaller_run`.
    """
    forms = {"learning_rate": "g", "beta_2": "g", "warmup_steps": ","}
    values = {name: (getattr(config, name), getattr(recipe, name)) for name in forms}
    changes = [
        f"--{name} is {now:{forms[name]}} (the recipe's: {before:{forms[name]}})"
        for name, (now, before) in values.items()
        if name not in given and now < before
    ]
    if not changes:
        return ""
    return f"This run is smaller than its recipe. So {' and '.join(changes)}."
