"""`python -m keras_corrupt.scoring`: what a pretrained model says of texts."""

import os
import sys

import tyro

from keras_corrupt import scoring
from keras_corrupt.devices.log_level import hide_start_up_lines
from keras_corrupt.scoring.highlight import legend


def highlight(
    texts: tyro.conf.Positional[tuple[str, ...]] = (),
    *,
    preset: str,
    color: bool = sys.stdout.isatty(),
) -> None:
    """Prints texts, and marks the words that are likely to have been replaced.

    Args:
        texts: Each in quotes; by default the lines of the standard input.
        preset: A trained model that detects replaced tokens, directory or name.
        color: Colour the words, rather than write <word 0.93>; so in a terminal.
    """
    model = _load(preset)
    lines = list(texts) or sys.stdin.read().splitlines()
    for text, words in zip(lines, scoring.word_scores(model, lines), strict=True):
        print(scoring.highlight(text, words, color))
    if color:
        print(f"\n{legend()}")


def score(
    texts: tyro.conf.Positional[tuple[str, ...]] = (),
    *,
    preset: str,
) -> None:
    """Prints a table of tab-separated columns, with a row for each word.

    The columns are the text's number, from 1, the word, and the probability that it was
    replaced.

    Args:
        texts: Each in quotes; by default the lines of the standard input.
        preset: A trained model that detects replaced tokens, directory or name.
    """
    model = _load(preset)
    print("text", "word", "probability", sep="\t")
    lines = list(texts) or sys.stdin.read().splitlines()
    for number, words in enumerate(scoring.word_scores(model, lines), 1):
        for word in words:
            text = " ".join(word.text.split())
            print(number, text, f"{word.probability:.4f}", sep="\t")


def _load(preset):
    from keras_corrupt.models import load_preset
    from keras_corrupt.models.trained_presets import directory_of, trained_presets

    if not os.path.isdir(directory_of(preset)):
        raise ValueError(
            f"--preset {preset}: neither a directory nor one of the trained presets "
            f"({', '.join(trained_presets()) or 'there are none'})."
        )
    model = load_preset(preset)
    if not hasattr(model, "score"):
        raise ValueError(
            f"--preset {preset}: {type(model).__name__} does not tell replaced words "
            "from others. Give a model that does, such as Electra."
        )
    return model


def main() -> None:
    """Runs the command line."""
    hide_start_up_lines()
    try:
        tyro.extras.subcommand_cli_from_dict(
            {"highlight": highlight, "score": score},
            prog="python -m keras_corrupt.scoring",
            use_underscores=True,
        )
    except ValueError as error:
        raise SystemExit(f"Error: {error}") from error


if __name__ == "__main__":
    main()
