"""The examples of a run: which settings `--data` decides, and that none changes."""

import dataclasses
import re

from keras_corrupt.data import load_dataset_info
from keras_corrupt.data.settings import NAMES

#: Fields of `PretrainConfig` that tell how examples are made.
EXAMPLE_SETTINGS = ("corpus", *NAMES)


def made_with(info):
    """Returns how examples were made: field of `PretrainConfig` -> value.

    Args:
        info: A `DatasetInfo`.
    """
    names = tuple(source["name"] for source in info.corpus)
    size = info.settings["vocabulary_size"] or info.vocabulary_size
    special = {"corpus": names, "vocabulary": None, "vocabulary_size": size}
    return {
        name: info.settings[name] for name in EXAMPLE_SETTINGS if name not in special
    } | special


def with_data(config):
    """Returns the configuration with what the examples of `--data`, if any, decide.

    Raises:
        DatasetError: They are none.
    """
    if not config.data:
        return config
    return dataclasses.replace(config, **made_with(load_dataset_info(config.data)))


def check_flags(config, flags):
    """Raises a `ValueError` for a flag that `--data` or `--init_from` decides.

    Args:
        config: A `PretrainConfig`.
        flags: The command line that it was read from, a list of strings.
    """
    given = names_of(flags)
    asked = [name for name in EXAMPLE_SETTINGS if name in given]
    decided = with_data(config) if asked else config
    for name in asked:
        value, decided_value = getattr(config, name), getattr(decided, name)
        if value not in (decided_value, None, ()):
            raise ValueError(
                f"--{name} {shown(value)}: the examples of --data {config.data} were "
                f"made with {shown(decided_value)}. Leave it out, or prepare others."
            )
    if config.init_from and not config.data:
        check_vocabulary_flags(config, given)


def check_vocabulary_flags(config, given):
    """Raises a `ValueError` for a flag that the vocabulary of `--init_from` decides.

    Args:
        config: A `PretrainConfig`.
        given: The names of the fields that the command line sets.
    """
    from keras_corrupt.models import Pretrainer
    from keras_corrupt.presets import Preset

    tokenizer = Preset.open(config.init_from, Pretrainer).tokenizer
    if tokenizer is None:
        return
    own = {
        "tokenizer": tokenizer.kind,
        "vocabulary": None,
        "vocabulary_size": tokenizer.vocabulary_size,
        **tokenizer.flags,
    }
    for name, value in own.items():
        if name in given and getattr(config, name) != value:
            raise ValueError(
                f"--{name} {shown(getattr(config, name))}: --init_from "
                f"{config.init_from} has a vocabulary of its own, which decides that. "
                "Leave it out, or begin with new weights."
            )


def names_of(flags):
    """Returns the names of the fields that a command line sets.

    >>> sorted(names_of(["--no-lowercase", "--steps=5", "--beta_2", "0.9"]))
    ['beta_2', 'lowercase', 'steps']
    """
    matches = (re.match(r"--(?:no[-_])?([\w-]+)", flag) for flag in flags)
    return {match[1].replace("-", "_") for match in matches if match}


def shown(value):
    """Returns a setting of examples as a person reads it."""
    if isinstance(value, tuple):
        return ", ".join(value[:3]) + ", ..." * (len(value) > 3)
    return "one of their own" if value is None else str(value)


def describe(info):
    """Returns how examples were made, in a line."""
    settings = made_with(info)
    return "; ".join(
        [
            f"{settings['tokenizer']} vocabulary of {info.vocabulary_size:,}",
            "lower case" if settings["lowercase"] else "case kept",
            "accents removed" if settings["strip_accents"] else "accents kept",
            *["language-neutral"] * settings["language_neutral"],
            *["a document a line"] * (settings["documents"] == "lines"),
            f"from {info.describe_corpus()}",
        ]
    )
