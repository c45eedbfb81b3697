"""`keras-corrupt`: each command is the function that another command runs."""

import re
import sys

import pytest

from keras_corrupt import __main__ as main
from keras_corrupt.cli import doctor, recipes
from tests.conftest import ROOT


@pytest.fixture
def run(monkeypatch, capsys):
    # A recipe takes the place of the main module, and its folder goes on the path.
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.setattr("sys.path", [*sys.path])

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["keras-corrupt", *arguments])
        try:
            main.main()
        except SystemExit as end:
            return end.code, capsys.readouterr().out
        return None, capsys.readouterr().out

    return run


def test_every_command_has_its_own_name_in_its_help(run):
    for name in main.COMMANDS:
        _, text = run(name, "--help")
        assert re.match(rf"usage: keras-corrupt {name}\b", text), name
    _, text = run()
    assert all(f"\n  {name} " in text for name in main.COMMANDS)


def test_every_recipe_has_a_command(run):
    named = [recipes.files(kind) for kind in (recipes.PRETRAINING, recipes.FINE_TUNING)]
    found = [path for files in named for path in files.values()]
    assert sorted(found) == sorted((ROOT / "recipes").glob("*.py"))
    _, text = run("finetune", "text", "--help")
    assert "usage: keras-corrupt finetune text" in text
    assert "Column of the second text, for pairs." in text  # of the recipe's source
    code, _ = run("pretrain", "finetune_text")
    assert "no RECIPE 'finetune_text'" in code and "electra_tiny" in code


def test_a_file_of_ones_own_is_run(run, tmp_path, capsys):
    recipe = tmp_path / "mine.py"
    recipe.write_text(
        "import sys\nif __name__ == '__main__':\n    print(__file__, sys.argv[1:])\n"
    )
    _, text = run("pretrain", str(recipe), "--steps", "5")
    assert text == f"{recipe} ['--steps', '5']\n"


def test_the_doctor_knows_what_is_there(run, monkeypatch):
    requirements = [
        "keras>=3", "numpy; extra == 'a'", "no-such>1; extra == 'b'",
        "keras; extra == 'b'", "numpy<1; extra == 'c'",
        "no-such; sys_platform == 'none' and extra == 'c'",
    ]  # fmt: skip
    monkeypatch.setattr(doctor.metadata, "requires", lambda name: requirements)
    code, text = run("doctor")
    assert code is None
    assert re.search(r"^backend: +(tensorflow|jax);", text, re.MULTILINE)
    assert re.search(r"^devices: .*\d+ CPU cores$", text, re.MULTILINE)
    assert re.search(r"^  a +installed +numpy \d", text, re.MULTILINE)
    assert re.search(r"^  b +- +no-such missing, keras \d", text, re.MULTILINE)
    assert re.search(r"^  c +- +numpy [\d.]+, not <1$", text, re.MULTILINE)
