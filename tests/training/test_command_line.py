"""Every option of a model is a flag."""

import dataclasses
import re

import pytest

from keras_corrupt.training import Phase, PretrainConfig, pretraining
from keras_corrupt.training.command_line import parse
from keras_corrupt.training.example_settings import names_of
from keras_corrupt.training.smaller_runs import note

RECIPE = PretrainConfig(
    model="Electra",
    preset="small",
    output="run",
    corpus=("a.txt",),
    objective={"mask_rate": 0.2, "generator": {"num_layers": 6}},
)


def test_without_flags_it_is_the_recipe():
    assert parse(RECIPE, []) == RECIPE


@pytest.mark.parametrize(
    "flags, changes",
    [
        ("--mask_rate 0.3", {"mask_rate": 0.3}),
        ("--masking whole_word", {"masking": "whole_word"}),
        ("--rtd-weight 10", {"rtd_weight": 10.0}),
        ("--discriminator.num_layers 4", {"discriminator": {"num_layers": 4}}),
        (
            "--discriminator.attention_dropout 0 --discriminator.approximate_gelu True",
            {"discriminator": {"attention_dropout": 0, "approximate_gelu": True}},
        ),
        (
            "--discriminator.relative_positions null",
            {"discriminator": {"relative_positions": None}},
        ),
        (
            '--discriminator.relative_positions {"num_buckets":32,"max_distance":128}',
            {
                "discriminator": {
                    "relative_positions": {"num_buckets": 32, "max_distance": 128}
                }
            },
        ),
        (
            "--discriminator.local_window None --discriminator.relative_positions None",
            {"discriminator": {"local_window": None, "relative_positions": None}},
        ),
        (
            "--generator.hidden_size 64",
            {"generator": {"num_layers": 6, "hidden_size": 64}},
        ),
    ],
)
def test_options_are_flags(flags, changes):
    config = parse(RECIPE, flags.split())
    assert config.objective == {**RECIPE.objective, **changes}
    config.check()
    rate = changes.get("mask_rate", 0.2)
    assert (
        config.model_class.from_preset("tiny", mask_rate=rate).masker.mask_rate == rate
    )


@pytest.mark.parametrize("value", [None, {"num_buckets": 32, "max_distance": 128}])
def test_a_recipe_may_switch_an_option_off_or_give_a_dict(value):
    objective = {"discriminator": {"relative_positions": value}}
    recipe = dataclasses.replace(RECIPE, objective=objective)
    assert parse(recipe, []) == recipe


def test_options_that_the_smallest_preset_has_no_room_for():
    config = PretrainConfig("Teams", "small", "run", objective={"task_layers": 3})
    assert pretraining.trial_model(config).name == "trial"
    config = dataclasses.replace(config, objective={"task_layers": 13})
    with pytest.raises(ValueError, match="must be from 0 to 12"):
        pretraining.trial_model(config)


def test_phases_are_as_long_as_the_run():
    phases = Phase("a", 100), Phase("b", 200)
    recipe = dataclasses.replace(RECIPE, steps=300, phases=phases)
    assert parse(recipe, []).phases == phases
    shorter = parse(recipe, ["--steps", "31"])
    assert [phase.steps for phase in shorter.phases] == [10, 21]


@pytest.mark.parametrize("option", ["mask_rate", "discriminator.num_layers"])
@pytest.mark.parametrize("value", ["None", "null"])
def test_an_option_that_cannot_be_none_is_none_of_these(option, value, capsys):
    with pytest.raises(SystemExit):
        parse(RECIPE, [f"--{option}", value])
    assert f"--{option}" in capsys.readouterr().err.replace("-layers", "_layers")


def test_a_dict_that_is_none_is_named():
    with pytest.raises(ValueError, match="--discriminator.relative_positions {32: not"):
        parse(RECIPE, ["--discriminator.relative_positions", "{32"])


def test_help_shows_what_holds_without_the_flag(capsys):
    """The generator is like the discriminator where nothing is said of it."""
    with pytest.raises(SystemExit):
        parse(RECIPE, ["--help"])
    printed = re.sub(r"\x1b\[[\d;]*m|[│╭╮╰╯─]", "", capsys.readouterr().out)
    printed = re.sub(r"\s+", " ", printed.replace("_", "-"))

    def default(flag):
        text = printed[printed.index(f"--{flag} ") :]
        return re.search(r"\(default: (.*?)\)", text)[1]

    assert default("mask-rate") == "0.2"  # the recipe's
    assert default("discriminator.hidden-size") == "256"  # the preset's
    assert default("discriminator.dropout") == "0.1"  # the constructor's
    assert default("generator.num-layers") == "6"
    assert default("generator.dropout") == "the model's choice"


def test_fields_and_options_together():
    config = parse(RECIPE, ["--steps", "7", "--keep_rate", "0.1"])
    assert (config.steps, config.objective["keep_rate"]) == (7, 0.1)
    assert config.corpus == ("a.txt",)


@pytest.mark.parametrize("flag", ["--discriminator.num_layer", "--objective"])
def test_a_flag_that_does_not_exist_names_the_nearest(flag, capsys):
    with pytest.raises(SystemExit) as caught:
        parse(RECIPE, [flag, "3"])
    assert caught.value.code == 2
    assert flag in capsys.readouterr().err
    with pytest.raises(SystemExit):
        parse(RECIPE, ["--discriminator.num_layer", "3"])
    assert "--discriminator.num-layers" in capsys.readouterr().err.replace("_", "-")


# === Runs that are shorter than the recipe's ===


@pytest.mark.parametrize(
    "flags, beta_2, warmup_steps",
    [
        ("", 0.999, 10_000),
        ("--steps 1000000", 0.999, 10_000),
        ("--steps 999999", 0.98, 10_000),
        ("--steps 30000", 0.98, 3_000),
        ("--steps=5 --warmup_steps=1", 0.98, 1),
        ("--steps 50 --beta_2 0.999", 0.999, 5),
        ("--steps 50 --beta-2=0.95 --warmup-steps 7", 0.95, 7),
        ("--steps 2000000", 0.999, 10_000),
    ],
)
def test_a_short_run_has_a_shorter_memory_and_warm_up(flags, beta_2, warmup_steps):
    config = parse(RECIPE, flags.split())
    assert (config.beta_2, config.warmup_steps) == (beta_2, warmup_steps)
    given = names_of(flags.split())
    told = note(config, RECIPE, given)
    for name, lower in (
        ("beta_2", beta_2 < 0.999),
        ("warmup_steps", warmup_steps < 1e4),
    ):
        assert (f"--{name} is" in told) == (lower and name not in given)


@pytest.mark.parametrize(
    "flags, rate",
    [
        ("--batch_size 32", 2.5e-4),
        ("--sequence_length=64 --batch_size 64", 2.5e-4),
        ("--batch_size 32 --learning_rate 1e-3", 1e-3),
        ("--batch_size 512", 5e-4),
        ("--accumulate 4", 5e-4),
    ],
)
def test_the_rate_goes_with_the_root_of_the_batch(flags, rate):
    config = parse(RECIPE, flags.split())
    assert config.learning_rate == rate
    told = note(config, RECIPE, names_of(flags.split()))
    assert ("--learning_rate is 0.00025 (the recipe's: 0.0005)" in told) == (
        rate == 2.5e-4
    )


def test_a_recipe_of_a_lower_beta_2_keeps_it():
    recipe = dataclasses.replace(RECIPE, beta_2=0.9)
    assert parse(recipe, ["--steps", "5"]).beta_2 == 0.9
