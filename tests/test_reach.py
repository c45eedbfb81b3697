import subprocess

import pytest

from tests import reach
from tests.lists import SLOW
from tests.test_build_file import ROOT

INTEGRATION = "tests/integration/test_recipes.py"


@pytest.mark.parametrize(
    "file, path, reached",
    [
        ("keras_corrupt/convert/card.py", "tests/convert/test_commands.py", True),
        ("keras_corrupt/convert/card.py", "tests/models/test_electra.py", False),
        (
            "keras_corrupt/models/electra.py",
            "tests/models/test_electra.py",
            True,
        ),
        ("keras_corrupt/training/pretraining.py", INTEGRATION, True),
        ("keras_corrupt/cross_view/noise.py", INTEGRATION, False),
        ("keras_corrupt/version.py", "tests/data/test_beam.py", True),
        ("setup.py", "tests/data/test_beam.py", True),
        ("recipes/teams_base.py", INTEGRATION, True),
        ("recipes/teams_base.py", "tests/data/test_beam.py", False),
        ("colab/quickstart_tpu.ipynb", "tests/test_colab.py", True),
        ("colab/quickstart_tpu.ipynb", INTEGRATION, False),
        ("tests/conftest.py", "tests/data/test_beam.py", True),
        ("tests/data/conftest.py", "tests/data/test_beam.py", True),
        ("tests/data/conftest.py", "tests/models/test_electra.py", False),
        (
            "tests/cross_view/conftest.py",
            "tests/cross_view/whole_runs/test_taggers.py",
            True,
        ),
        ("tests/fixtures/record_hugging_face.py", "tests/data/test_beam.py", True),
        ("tests/data/test_beam.py", "tests/data/test_beam.py", True),
        ("tests/data/test_corpus.py", "tests/data/test_beam.py", False),
        ("tests/slow.txt", "tests/test_colab.py", False),
        ("README.md", INTEGRATION, False),
    ],
)
def test_what_a_change_reaches(file, path, reached):
    assert (ROOT / file).is_file() and (ROOT / path).is_file()
    assert reach.is_reached(path, {file}) is reached


def test_slow_tests_are_about_code_that_there_is():
    for path in {identifier.split("::")[0] for identifier in SLOW}:
        for folder in reach.subjects(path):
            found = ROOT / "keras_corrupt" / folder, ROOT / folder
            assert any(directory.is_dir() for directory in found), path


def test_the_shortest_are_taken_as_many_as_end_in_time(monkeypatch):
    monkeypatch.setattr(reach, "changed_files", lambda: {"setup.py"})
    taken = reach.reached.__wrapped__()
    seconds = sum(SLOW[name] for name in taken)
    left_out = [SLOW[name] for name in SLOW if name not in taken]
    assert seconds <= reach.BUDGET < seconds + min(left_out)
    assert min(left_out) >= max(SLOW[name] for name in taken)
    monkeypatch.setattr(reach, "changed_files", lambda: {"keras_corrupt/heads/a.py"})
    heads = {name for name in SLOW if name.startswith("tests/heads/")}
    assert reach.reached.__wrapped__() == heads != set()


def test_without_a_known_commit_everything_is_reached():
    assert reach.is_reached("tests/data/test_beam.py", None)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository whose full run was at its only commit."""
    monkeypatch.setattr(reach, "ROOT", tmp_path)
    monkeypatch.setattr(reach, "FULL_RUN", tmp_path / "full_run.txt")
    (tmp_path / "a.py").write_text("1")
    for command in (
        "init",
        "add a.py",
        "-c user.name=a -c user.email=a@b.c commit -m a",
    ):
        subprocess.run(["git", "-C", tmp_path, *command.split()], check=True)
    reach.main()
    return tmp_path


def changed():
    return reach.changed_files.__wrapped__()


def test_changes_are_those_since_the_full_run(repository):
    assert changed() == {"full_run.txt"}
    (repository / "a.py").write_text("2")
    (repository / "b.py").write_text("new")
    assert changed() == {"a.py", "b.py", "full_run.txt"}


def test_nothing_is_known_of_other_packages_or_commits(repository, monkeypatch):
    text = reach.FULL_RUN.read_text()
    reach.FULL_RUN.write_text(text.replace("keras==", "keras==0."))
    assert changed() is None
    reach.FULL_RUN.write_text("0123456789" + text[10:])
    assert changed() is None
    reach.FULL_RUN.unlink()
    assert changed() is None
