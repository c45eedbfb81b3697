"""`keras-corrupt pretrain RECIPE` and `finetune TASK`: they run a recipe's file."""

import ast
import importlib.util
import sys
from pathlib import Path
from typing import NamedTuple


class Kind(NamedTuple):
    """Recipes of a kind.

    Attributes:
        metavar: The word for a recipe's name in the command's help.
        takes: Function of a recipe's name: the name in the command, `None` if the
            recipe is of another kind.
        usual: The name of one of the recipes, for messages.
    """

    metavar: str
    takes: callable
    usual: str


def _fine_tunes(name):
    if name.startswith("finetune_"):
        return name.removeprefix("finetune_")
    return name if name.startswith("cvt_") else None


def _pretrains(name):
    return None if _fine_tunes(name) else name


PRETRAINING = Kind("RECIPE", _pretrains, "electra_tiny")
FINE_TUNING = Kind("TASK", _fine_tunes, "text")


def folder():
    """Returns the folder of the recipes: in a wheel, or beside it in a checkout."""
    package = Path(__file__).parents[1]
    inside = package / "recipes"
    return inside if inside.is_dir() else package.parent / "recipes"


def files(kind):
    """Returns the recipes of a kind: their names in the command, and their files."""
    named = {kind.takes(path.stem): path for path in sorted(folder().glob("*.py"))}
    return {name: path for name, path in named.items() if name}


def pretrain(prog):
    """Runs the command line of `prog`, the name of the program."""
    _main(PRETRAINING, prog)


def finetune(prog):
    """Runs the command line of `prog`, the name of the program."""
    _main(FINE_TUNING, prog)


def _main(kind, prog):
    """Runs a recipe, with the flags that follow its name in `sys.argv`."""
    recipes = files(kind)
    name, *flags = sys.argv[1:] or ["--help"]
    if name in ("-h", "--help"):
        print(_help(kind, prog, recipes))
        return
    path = Path(name) if name.endswith(".py") else recipes.get(name)
    if path is None or not path.is_file():
        raise SystemExit(
            f"Error: there is no {kind.metavar} {name!r}. Give the path of a recipe, "
            f"or one of {', '.join(recipes)}; the flags follow, such as: {prog} "
            f"{kind.usual} --smoke"
        )
    sys.argv = [f"{prog} {name}", *flags]
    run(path)


def run(path):
    """Runs a file as Python runs a script; unlike `runpy`, it leaves `sys.argv`."""
    spec = importlib.util.spec_from_file_location("__main__", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["__main__"] = module  # where help finds the fields' comments
    sys.path.insert(0, str(path.resolve().parent))
    spec.loader.exec_module(module)


def _help(kind, prog, recipes):
    width = max(map(len, recipes))
    lines = [f"  {name:{width}}  {_title(path)}" for name, path in recipes.items()]
    return "\n".join(
        [
            f"usage: {prog} {kind.metavar} [flags]",
            "",
            f"{kind.metavar} is one of these, or the path of a file like theirs, in",
            f"{folder()}:",
            *lines,
            "",
            f"{prog} {kind.metavar} --help has the flags, for example {prog} "
            f"{kind.usual} --help.",
        ]
    )


def _title(path):
    """Returns the first line of a recipe's docstring, without running the recipe."""
    return ast.get_docstring(ast.parse(path.read_text("utf-8"))).splitlines()[0]
