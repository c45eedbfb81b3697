"""What a recipe changes in a run that is shorter than its paper's.

With beta_2 0.999 Adam's second moment remembers a thousand updates, in which the
gradient of a short run becomes many times smaller. Deep detectors have died of it: see
docs/troubleshooting.md.
"""

import dataclasses

#: The largest beta_2 of a run that is shorter than its recipe's.
SHORT_MEMORY = 0.98


def of_short_run(config, recipe, given):
    """Lowers beta_2 in a run of fewer steps than its recipe has.

    Args:
        config: A `PretrainConfig`, read from flags.
        recipe: That of the recipe, the flags' defaults.
        given: Names of the flags that were given.

    Returns:
        A `PretrainConfig`.

    >>> from keras_corrupt.training import PretrainConfig
    >>> recipe = PretrainConfig("Electra", "small", "run", steps=1000, beta_2=0.999)
    >>> of_short_run(dataclasses.replace(recipe, steps=100), recipe, set()).beta_2
    0.98
    """
    if config.steps >= recipe.steps or "beta_2" in given:
        return config
    return dataclasses.replace(config, beta_2=min(config.beta_2, SHORT_MEMORY))


def note(config, recipe):
    """Returns a line about what `of_short_run` changed, an empty text if nothing."""
    if config.beta_2 == recipe.beta_2 or config.steps >= recipe.steps:
        return ""
    return (
        f"Adam's beta_2 is {config.beta_2:g}, for {config.steps:,} steps; the recipe "
        f"has {recipe.beta_2:g}, for {recipe.steps:,}. --beta_2 sets another."
    )
