"""Every pretraining recipe runs, explains itself, and refuses unknown flags."""

import ast
import dataclasses
import importlib.util
import inspect
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from keras_corrupt import models
from keras_corrupt.models import (
    AdversarialElectra,
    AllTokensMLM,
    CocoLM,
    Electra,
    Electric,
    MaskedLM,
    ReplaceMLM,
    Teams,
    UnigramElectra,
)
from keras_corrupt.models.options import options_of
from keras_corrupt.training import PretrainConfig
from keras_corrupt.training.callbacks import read_metrics
from tests.conftest import without_graphs

ROOT = Path(__file__).parents[2]
RECIPES = sorted(
    path
    for path in (ROOT / "recipes").glob("*.py")
    if not path.stem.startswith(("cvt", "finetune"))
)
every_recipe = pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
#: Their `--smoke` is that of another recipe here with other settings of the optimizer.
ALIKE = r"(electra|electric|teams)_(small|base|large)|coco_lm_(base|large)|fe_mlm_base"
DIFFERENT = [path for path in RECIPES if not re.fullmatch(ALIKE, path.stem)]


@pytest.fixture
def run(monkeypatch):
    """Runs a recipe as `python RECIPE FLAGS` does, in this process.

    Its smallest preset is smaller still.
    """
    small = Electra.presets["tiny"]["discriminator"] | {
        "num_layers": 1,
        "hidden_size": 16,
        "intermediate_size": 32,
        "embedding_size": 16,
    }
    generator = {"hidden_size": 8, "intermediate_size": 16, "num_heads": 1}
    electra = {"discriminator": small, "generator": generator, "mask_rate": 0.15}
    monkeypatch.setitem(Electra.presets, "tiny", electra)
    monkeypatch.setitem(Electric.presets, "tiny", electra)
    monkeypatch.setitem(MaskedLM.presets, "tiny", {"encoder": small})
    monkeypatch.setitem(UnigramElectra.presets, "tiny", {"discriminator": small})
    coco_lm = {"discriminator": small, "generator": {"num_layers": 1}}
    monkeypatch.setitem(CocoLM.presets, "tiny", coco_lm)
    teams = {"discriminator": small | {"num_layers": 2}, "generator_layers": 2}
    monkeypatch.setitem(Teams.presets, "tiny", teams)

    def run_recipe(path, *flags):
        monkeypatch.setattr("sys.argv", [str(path), *map(str, flags)])
        runpy.run_path(str(path), run_name="__main__")

    with without_graphs():
        yield run_recipe


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", DIFFERENT, ids=lambda path: path.stem)
def test_smoke(path, run, prepared, tmp_path, capsys):
    output = tmp_path / "run"
    run(path, "--smoke", "--data", prepared.directory, "--corpus", "--output", output)
    config = load(path).config()
    assert [row["step"] for row in read_metrics(output / "metrics.csv")] == [3, 6]
    loaded = models.load_preset(output / "preset")
    assert type(loaded) is config.model_class
    found = loaded.get_config()
    for name, value in config.objective.items():
        if name in loaded.network_arguments:
            assert value.items() <= found[name].items()
        else:
            assert found[name] == value
    *_, metric = loaded.objectives.metric_names.values()
    assert metric in capsys.readouterr().out


@pytest.mark.parametrize(
    "flags, system",
    [
        ("--model AdversarialElectra", AdversarialElectra),
        ("--model AllTokensMLM", AllTokensMLM),
        ("--model ReplaceMLM", ReplaceMLM),
        ("--model UnigramElectra", UnigramElectra),
        ("--variant two_stage", Electra),
        ("--tied_embeddings gradient_disentangled --generator_width 0.5", Electra),
    ],
)
def test_electras_variants(flags, system, run, prepared, tmp_path, capsys):
    data = "--data", prepared.directory, "--output", tmp_path / "run"
    run(ROOT / "recipes" / "electra_small.py", "--smoke", *flags.split(), *data)
    model = models.load_preset(tmp_path / "run" / "preset")
    assert type(model) is system
    *_, metric = model.objectives.metric_names.values()
    assert metric in capsys.readouterr().out


@every_recipe
def test_help_shows_the_docstring_and_explains_every_flag(path, run, capsys):
    with pytest.raises(SystemExit) as caught:
        run(path, "--help")
    assert caught.value.code == 0
    # Without tyro's colours, frames and line breaks.
    printed = re.sub(r"\x1b\[[\d;]*m|[│╭╮╰╯─]", "", capsys.readouterr().out)
    printed = re.sub(r"\s+", " ", printed)
    module = load(path)
    for sentence in module.__doc__.split("\n\n"):
        assert re.sub(r"\s+", " ", sentence).strip() in printed
    for name, text in field_texts().items():
        if name not in ("objective", "phases"):  # what Python alone can set
            assert f"--{name.replace('_', '-')}" in printed.replace("_", "-")
            assert text.rstrip(".") in printed, name
    for name, option in options_of(module.config().model_class).items():
        flags = [f"{name}.{inner}" for inner in option]
        for flag in flags if isinstance(option, dict) else [name]:
            assert f"--{flag.replace('_', '-')}" in printed.replace("_", "-")


def field_texts():
    """Returns the string under each field of `PretrainConfig`, which --help shows."""
    bodies = [
        ast.parse(inspect.getsource(part)).body[0].body
        for part in PretrainConfig.__mro__[:-1]
    ]
    return {
        field.target.id: re.sub(r"\s+", " ", text.value.value)
        for body in bodies
        for field, text in zip(body, body[1:], strict=False)
        if isinstance(field, ast.AnnAssign)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
    }


def test_every_field_has_a_text():
    assert set(field_texts()) == {f.name for f in dataclasses.fields(PretrainConfig)}


@every_recipe
def test_docstring_has_the_command_and_output_is_its_own(path):
    module = load(path)
    assert f"python recipes/{path.name}" in module.__doc__
    assert module.config().output == f"runs/{path.stem}"


@every_recipe
def test_the_values_can_work(path):
    config = load(path).config()
    if not config.corpus:  # the user's to give
        config = dataclasses.replace(config, corpus=("corpus.txt",))
    config.check()
    config.shrunk().check()
    dataclasses.replace(config, data="examples").shrunk().check()


@every_recipe
def test_an_unknown_flag_exits_with_2_and_writes_nothing(path, run, tmp_path, capsys):
    with pytest.raises(SystemExit) as caught:
        run(path, "--output", tmp_path / "run", "--nonsense", "1")
    assert caught.value.code == 2
    assert "--nonsense" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_first_command(tmp_path):
    """From the built-in corpus to a preset, in a process of its own."""
    command = [sys.executable, str(ROOT / "recipes" / "electra_tiny.py"), "--smoke"]
    ran = subprocess.run(
        command,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
    assert "Traceback" not in ran.stderr
    directory = tmp_path / "runs" / "electra_tiny"
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]
    assert sorted(path.name for path in directory.iterdir()) == [
        "checkpoints",
        "curves.png",
        "data",
        "metrics.csv",
        "preset",
        "run.json",
        "tensorboard",
    ]
    model = Electra.from_preset(directory / "preset")
    assert model.tokenizer.vocabulary_size == 1000
    (score,) = model.score(["Return the number of items."])
    assert score.tokens[0] == "[CLS]" and score.tokens[-1] == "[SEP]"
