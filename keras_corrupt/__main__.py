"""`keras-corrupt`, or `python -m keras_corrupt`: one command for all others."""

import argparse
import importlib
import sys

from keras_corrupt.version import __version__

PROGRAM = "keras-corrupt"

#: Command -> what it does, and the function that reads its flags and runs it, which is
#: imported only then.
COMMANDS = {
    "prepare": ("make training examples from a corpus", "data.__main__:main_prepare"),
    "pretrain": ("pretrain a model by a recipe", "cli.recipes:pretrain"),
    "finetune": ("train a pretrained model on a task", "cli.recipes:finetune"),
    "predict": ("let a fine-tuned model answer a file's rows", "cli.predict:main"),
    "score": ("suspicious words, likelihoods, minimal pairs", "scoring.__main__:main"),
    "convert": ("models to other libraries, back, to hubs", "convert.__main__:main"),
    "demo": ("a page in the browser to try a model", "cli.demo:main"),
    "doctor": ("versions, devices, and which extras there are", "cli.doctor:main"),
}


def main():
    """Runs the command line."""
    lines = [f"  {name:10}{about}" for name, (about, _) in COMMANDS.items()]
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        usage=f"{PROGRAM} COMMAND [flags]",
        description="Pretrain text encoders by corrupting text, and use them.",
        epilog="\n".join(
            ["commands:", *lines, "", f"{PROGRAM} COMMAND --help has the flags."]
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument("command", choices=COMMANDS, help=argparse.SUPPRESS)
    parser.add_argument("flags", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    given = parser.parse_args(sys.argv[1:] or ["--help"])
    prog = f"{PROGRAM} {given.command}"
    sys.argv = [prog, *given.flags]
    _, function = COMMANDS[given.command]
    module, _, function = function.partition(":")
    getattr(importlib.import_module(f"keras_corrupt.{module}"), function)(prog=prog)


if __name__ == "__main__":
    main()
