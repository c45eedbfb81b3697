"""The command line of a recipe: its fields and its model's options are flags."""

import argparse
import dataclasses
import json
import os
import sys
from typing import Annotated, Literal

import tyro

from keras_corrupt.commands.frame import command
from keras_corrupt.training import keras_stand_in
from keras_corrupt.training.example_settings import check_flags, names_of
from keras_corrupt.training.phases import scaled
from keras_corrupt.training.smaller_runs import note, of_smaller_run, tokens

#: The value of an option that neither a flag nor a recipe gives.
NOT_GIVEN = ""


@command("Run the same command again to go on.")
def main(recipe, description, run=None, **variants):
    """Runs a recipe from the command line.

    Args:
        recipe: The recipe's `PretrainConfig`; its fields become flags, its values
            their defaults. The options of its model are flags, too.
        description: Help text, the recipe's docstring.
        run: Function of the configuration to call, if that is not `pretrain`; returns
            `None` where the user stopped it.
        variants: The recipe's other settings by name; `--variant NAME` takes them as
            the defaults instead.
    """
    recipe, flags = _recipe_and_flags(recipe, variants)
    if {"-h", "--help"} & {*flags}:
        flags = ["--help"]
        if ":" not in recipe.model:  # a module of others may need more of Keras
            keras_stand_in.install()
    config = parse(recipe, flags, description)

    # Not above: help needs no Keras.
    from keras_corrupt.devices.distribution import LostProcessError
    from keras_corrupt.training import pretraining

    check_flags(config, flags)
    if changed := note(config, recipe, names_of(flags)):
        print(f"Note: {changed}")
    if 0 < tokens(config) < tokens(recipe) / 4 and not config.smoke:
        print(
            f"Warning: {tokens(config):,} tokens a step are far fewer than the "
            f"recipe's {tokens(recipe):,}. If memory is short, keep --batch_size and "
            "raise --accumulate.",
            file=sys.stderr,
        )
    try:
        if (run or pretraining.pretrain)(config) is None:
            sys.exit(130)  # a shell's code for Ctrl-C: what follows should not run
    except LostProcessError as error:
        print(f"Error: {error}", file=sys.stderr, flush=True)
        os._exit(1)  # an orderly end would wait for the lost process


def _recipe_and_flags(recipe, variants):
    """Reads the flags that decide about the others: `--variant` and `--model`."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    if variants:
        parser.add_argument("--variant", choices=list(variants))
    parser.add_argument("--model")
    chosen, flags = parser.parse_known_args()
    recipe = variants.get(getattr(chosen, "variant", None), recipe)
    if chosen.model and chosen.model != recipe.model:
        recipe = dataclasses.replace(recipe, model=chosen.model, objective={})
    return recipe, flags


def parse(recipe, flags, description=None):
    """Reads a configuration from flags.

    Args:
        recipe: A `PretrainConfig`, the defaults.
        flags: A list of strings.
        description: Help text.

    Returns:
        A `PretrainConfig`.
    """
    from keras_corrupt.models.options import options_of

    cls = recipe.model_class
    preset = cls.presets.get(recipe.preset, {})
    options = _flags_of("Options", options_of(cls), recipe.objective, preset)
    command = dataclasses.make_dataclass(
        "Command",
        [
            ("run", Annotated[type(recipe), tyro.conf.arg(name="")]),
            ("options", Annotated[options, tyro.conf.arg(name="")]),
        ],
    )
    parsed = tyro.cli(
        command,
        args=flags,
        default=command(recipe, options()),
        description=description,
        use_underscores=True,
    )
    config = dataclasses.replace(parsed.run, objective=_values_of(parsed.options))
    if config.phases and config.steps != recipe.steps:
        phases = scaled(config.phases, config.steps)
        config = dataclasses.replace(config, phases=phases)
    return of_smaller_run(config, recipe, names_of(flags))


def _flags_of(name, options, values, preset, fallback=True):
    """Makes a dataclass of options: the recipe's values, or `NOT_GIVEN`.

    Args:
        name: The dataclass's name.
        options: What `options_of` returns.
        values: The recipe's values.
        preset: The preset's, which help texts show.
        fallback: Whether what neither gives is the constructor's default. In ELECTRA
            it is for the discriminator, and the generator is like that one.
    """
    fields, main = [], True
    for option, spec in options.items():
        usual = values.get(option, preset.get(option))
        if isinstance(spec, dict):
            inner = _flags_of(option, spec, values.get(option, {}), usual or {}, main)
            fields.append((option, inner, dataclasses.field(default_factory=inner)))
            main = False  # the first network is the one that is fine-tuned later
            continue
        kind = spec.type or (int | float | bool | str if usual is None else type(usual))
        value = values.get(option, NOT_GIVEN)
        if kind is dict:  # in JSON, which `_values_of` reads
            kind, value = str, json.dumps(value) if isinstance(value, dict) else value
        if usual is None:
            usual = spec.default if fallback else "the model's choice"
        about = tyro.conf.arg(
            help=spec.text or option.replace("_", " "),
            metavar=getattr(kind, "__name__", "value").upper(),
            help_behavior_hint=f"(default: {usual})",
        )
        kind = Literal[NOT_GIVEN] | kind
        if spec.can_be_none:
            kind = None | Literal["null"] | kind
        fields.append((option, Annotated[kind, about], value))
    return dataclasses.make_dataclass(name, fields)


def _values_of(options, prefix="--"):
    """Returns the options that have a value, as `PretrainConfig.objective` has them.

    Dicts are given in JSON. `None` and JSON's `null` both switch an option off.

    Args:
        options: A dataclass that `_flags_of` made, with values.
        prefix: What precedes the names of its flags.

    Raises:
        ValueError: A value begins as a dict in JSON, but is none.
    """
    values = {}
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        if dataclasses.is_dataclass(value):
            value = _values_of(value, f"{prefix}{field.name}.") or NOT_GIVEN
        elif value == "null":
            value = None
        elif isinstance(value, str) and value.startswith("{"):
            try:
                value = json.loads(value)
            except ValueError as error:
                raise ValueError(
                    f"{prefix}{field.name} {value}: not a dict in JSON ({error})."
                ) from error
        if value != NOT_GIVEN:
            values[field.name] = value
    return values
