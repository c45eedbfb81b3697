"""What a recipe changes in a run that is shorter than its paper's.

With beta_2 0.999 Adam's second moment remembers a thousand updates, in which the
gradient of a short run becomes many times smaller. Deep detectors have died of it: see
docs/troubleshooting.md. And a warm-up that is meant for a million updates would be most
of a short run.
"""

import dataclasses

#: The largest beta_2 of a run that is shorter than its recipe's.
SHORT_MEMORY = 0.98
#: The largest share of its updates in which its rate rises.
LONGEST_WARM_UP = 0.1


def of_short_run(config, recipe, given):
    """Lowers beta_2 and the warm-up in a run of fewer steps than its recipe has.

    Args:
        config: A `PretrainConfig`, read from flags.
        recipe: That of the recipe, the flags' defaults.
        given: Names of the flags that were given.

    Returns:
        A `PretrainConfig`.

    >>> from keras_corrupt.training import PretrainConfig
    >>> recipe = PretrainConfig(
    ...     "Electra", "small", "run", steps=1000, warmup_steps=50, beta_2=0.999)
    >>> short = of_short_run(dataclasses.replace(recipe, steps=100), recipe, set())
    >>> short.beta_2, short.warmup_steps
    (0.98, 10)
    """
    if config.steps >= recipe.steps:
        return config
    lower = {
        "beta_2": min(config.beta_2, SHORT_MEMORY),
        "warmup_steps": min(config.warmup_steps, int(LONGEST_WARM_UP * config.steps)),
    }
    lower = {name: value for name, value in lower.items() if name not in given}
    return dataclasses.replace(config, **lower)


def note(config, recipe):
    """Returns a line about what `of_short_run` changed, an empty text if nothing."""
    changes = [
        f"--{name} is {getattr(config, name):{form}} (the recipe's: "
        f"{getattr(recipe, name):{form}})"
        for name, form in (("beta_2", "g"), ("warmup_steps", ","))
        if getattr(config, name) < getattr(recipe, name)
    ]
    if not changes or config.steps >= recipe.steps:
        return ""
    return (
        f"For {config.steps:,} steps instead of the recipe's {recipe.steps:,}, "
        f"{' and '.join(changes)}."
    )
