"""Pretraining models, one folder each. Start with README.md in this folder."""

from keras_corrupt.models import preset_directory
from keras_corrupt.models.electra.electra import Electra
from keras_corrupt.models.masked_lm.masked_lm import MaskedLM
from keras_corrupt.models.teams.teams import Teams

__all__ = ["Electra", "MaskedLM", "Teams", "load_preset"]


def load_preset(directory):
    """Loads a saved preset, whichever model it is of.

    Args:
        directory: What `save_to_preset` wrote.

    Returns:
        The model.

    Raises:
        ValueError: It is not such a directory.
    """
    name = preset_directory.class_name(directory)
    models = {cls.__name__: cls for cls in (Electra, MaskedLM, Teams)}
    if name not in models:
        raise ValueError(
            f"{directory} is a preset of {name!r}; known models: {sorted(models)}."
        )
    return models[name].from_preset(directory)
