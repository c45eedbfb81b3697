"""Help comes without Keras; nothing is printed that commands do not say."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from keras_corrupt.commands.frame import hide_start_up_lines
from keras_corrupt.training import command_line

ROOT = Path(__file__).parents[1]
#: Runs commands in one process, and says what that has imported.
SCRIPT = """
import runpy, sys
for command in sys.argv[1:]:
    path, *flags = command.split()
    run = runpy.run_path if path.endswith(".py") else runpy.run_module
    sys.argv = [path, *flags, "--help"]
    try:
        run(path, run_name="__main__")
    except SystemExit as end:
        assert not end.code, command
heavy = {"tensorflow", "jax", "scipy", "sklearn", "matplotlib", "numba"}
print("loaded:", sorted(heavy & {*sys.modules}))
"""


def words(printed):
    return re.sub(r"\x1b\[[\d;]*m|[│╭╮╰╯─|+]|-{3,}", "", printed).split()


def test_help_needs_no_backend(monkeypatch, capsys):
    """And is the same. `own_objective.py` defines a model, which needs Keras."""
    recipes = {path.name for path in (ROOT / "recipes").glob("*.py")}
    others = sorted(recipes - {"electra_small.py", "own_objective.py"})
    commands = ["electra_small.py", *others, "teams_base.py --variant plus_plus"]
    commands = [f"recipes/{command}" for command in commands]
    for command in ("convert", "data", "data prepare", "scoring", "scoring highlight"):
        room, *subcommand = command.split()
        commands.append(" ".join([f"keras_corrupt.{room}.__main__", *subcommand]))
    for command in ("", "finetune", "predict", "score", "demo", "doctor"):
        commands.append(f"keras_corrupt.__main__ {command}")
    for analysis in ("gradient_variance", "similarity"):
        commands.append(f"keras_corrupt.evaluation.{analysis}")
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, *commands],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    *printed, heavy = words(ran.stdout.replace("loaded: ", "loaded:"))
    assert heavy == "loaded:[]"
    # In this process Keras is loaded.
    recipe = runpy.run_path(str(ROOT / "recipes" / "electra_small.py"))
    monkeypatch.setattr("sys.argv", ["recipes/electra_small.py"])
    with pytest.raises(SystemExit):
        command_line.parse(recipe["config"](), ["--help"], recipe["__doc__"])
    expected = words(capsys.readouterr().out)
    assert "--generator.num-layers" in [word.replace("_", "-") for word in expected]
    assert printed[: len(expected)] == expected


def test_the_users_own_log_level_stays(monkeypatch):
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL")
    hide_start_up_lines()
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "3"
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    hide_start_up_lines()
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "0"
