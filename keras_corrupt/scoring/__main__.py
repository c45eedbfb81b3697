"""`python -m keras_corrupt.scoring`: a pretrained model's scores of texts."""

import json
import os
import sys

import numpy as np
import tyro

from keras_corrupt import scoring
from keras_corrupt.commands.frame import command
from keras_corrupt.files.streams import input_lines, standard_output
from keras_corrupt.files.whole import check_plain, write_whole
from keras_corrupt.scoring.highlight import legend


def highlight(
    texts: tyro.conf.Positional[tuple[str, ...]] = (),
    *,
    preset: str = "tiny_en",
    system: str | None = None,
    color: bool = sys.stdout.isatty(),
) -> None:
    """Prints texts, and marks the words that are likely to have been replaced.

    Args:
        texts: Each in quotes; by default the lines of the standard input.
        preset: A trained model that detects replaced tokens, directory or name.
        system: module:Class of the preset's model, where it is not of this package.
        color: Colour the words, rather than write <word 0.93>; so in a terminal.
    """
    model = _detector(preset, system)
    lines = list(texts) or [line for _, line in input_lines()]
    for text, words in zip(lines, scoring.replaced_words(model, lines), strict=True):
        print(scoring.highlight(text, words, color))
    if color:
        print(f"\n{legend()}")


def score(
    texts: tyro.conf.Positional[tuple[str, ...]] = (),
    *,
    preset: str = "tiny_en",
    system: str | None = None,
) -> None:
    """Prints a table of tab-separated columns, with a row for each word.

    The columns are the text's number, from 1, the word, and the probability that it was
    replaced.

    Args:
        texts: Each in quotes; by default the lines of the standard input.
        preset: A trained model that detects replaced tokens, directory or name.
        system: module:Class of the preset's model, where it is not of this package.
    """
    model = _detector(preset, system)
    print("text", "word", "probability", sep="\t")
    lines = list(texts) or [line for _, line in input_lines()]
    for number, words in enumerate(scoring.replaced_words(model, lines), 1):
        for word in words:
            text = " ".join(word.text.split())
            print(number, text, f"{word.score:.4f}", sep="\t")


def pll(
    texts: tyro.conf.Positional[tuple[str, ...]] = (),
    *,
    preset: str,
    system: str | None = None,
    batch_size: int = 32,
) -> None:
    """Prints the pseudo-log-likelihood of each text, in nats, and a tab, and the text.

    Args:
        texts: Each in quotes; by default the lines of the standard input.
        preset: A trained model that gives tokens probabilities, directory or name.
        system: module:Class of the preset's model, where it is not of this package.
        batch_size: Texts that are read at once.
    """
    model = _cloze_model(preset, system)
    lines = list(texts) or [line for _, line in input_lines()]
    likelihoods = _likelihoods(model, lines, batch_size)
    for text, likelihood in zip(lines, likelihoods, strict=True):
        print(f"{likelihood:.4f}", text, sep="\t")


def rescore(
    lists: tyro.conf.Positional[str],
    *,
    preset: str,
    system: str | None = None,
    parts: tuple[tuple[str, float], ...] = (("score", 1.0),),
    length_power: float = 0.0,
    output: str | None = None,
    batch_size: int = 32,
) -> None:
    """Re-ranks a recogniser's hypotheses, and prints word error rates.

    lambda, from 0.05 to 1, is chosen on the first half of the utterances.

    Args:
        lists: The n-best lists, a JSON file, plain or compressed (.gz, .xz, .zst):
            {utterance: {ref, hyp_1: {text, score}, ...}}.
        preset: A trained model that gives tokens probabilities, directory or name.
        system: module:Class of the preset's model, where it is not of this package.
        parts: The parts of the recogniser's score: names of a hypothesis's numbers in
            the file, and their weights. So its own language model can be left out.
        length_power: Scores are divided by this power of a text's number of words; 1
            for scores by the word.
        output: A new JSON file for the texts that are chosen, {utterance: text}.
        batch_size: Texts that are read at once.
    """
    if output and os.path.exists(output):
        raise ValueError(f"--output {output} exists. Name a new file.")
    check_plain(output or "", "texts")
    if output and not os.path.isdir(os.path.dirname(output) or "."):
        raise ValueError(f"--output {output}: there is no such directory. Make it.")
    n_best_lists = scoring.read_n_best(lists, parts)
    model = _cloze_model(preset, system)
    texts = [text for n_best in n_best_lists for text in n_best.texts]
    likelihoods = _likelihoods(model, texts, batch_size)
    ends = np.cumsum([len(n_best.texts) for n_best in n_best_lists])
    likelihoods = np.split(likelihoods, ends[:-1])
    result = scoring.rerank(n_best_lists, likelihoods, length_power=length_power)
    print("word error rate (%)", "first half", "second half", sep="\t")
    for name, rates in (
        ("recogniser's best", result.best),
        (f"re-ranked, lambda {result.weight:.2f}", result.reranked),
        ("oracle", result.oracle),
    ):
        print(name, *(f"{100 * rate:.2f}" for rate in rates), sep="\t")
    if output:
        chosen = {
            n_best.utterance: n_best.texts[number]
            for n_best, number in zip(n_best_lists, result.chosen, strict=True)
        }
        write_whole(output, json.dumps(chosen, indent=1, ensure_ascii=False))


def blimp(
    files: tyro.conf.Positional[tuple[str, ...]],
    *,
    preset: str,
    system: str | None = None,
    batch_size: int = 32,
) -> None:
    """Prints how often a model finds the acceptable one of two sentences likelier.

    A model without probabilities of tokens, such as Electra, judges by the probability
    that no token was replaced.

    The first number counts pairs of equal likelihoods as wrong, the second as right.

    Args:
        files: .jsonl files of BLiMP's layout, or folders of such.
        preset: A trained model, directory or name.
        system: module:Class of the preset's model, where it is not of this package.
        batch_size: Texts that are read at once.
    """
    from keras_corrupt.models import load_preset

    pairs = scoring.read_pairs(files)
    texts = [pair.good for pair in pairs] + [pair.bad for pair in pairs]
    model = load_preset(preset, system=system)
    scores = scoring.acceptabilities(model, texts, batch_size, sys.stderr.isatty())
    print("pairs", "accuracy (%)", "with ties (%)", sep="\t")
    rules = [scoring.accuracies(pairs, scores, ties) for ties in ("wrong", "right")]
    for table, with_ties in zip(*rules, strict=True):
        for name, accuracy in table.items():
            shares = accuracy, with_ties[name]
            print(name, *(f"{100 * share:.1f}" for share in shares), sep="\t")


def _likelihoods(model, texts, batch_size):
    progress = sys.stderr.isatty()
    return scoring.score_sentences(
        model, texts, batch_size=batch_size, progress=progress
    )


def _detector(preset, system):
    from keras_corrupt.models import load_preset

    model = load_preset(preset, system=system)
    if not hasattr(model, "score"):
        raise ValueError(
            f"--preset {preset}: {type(model).__name__} does not tell replaced words "
            "from others. Give a model that does, such as Electra."
        )
    return model


def _cloze_model(preset, system):
    from keras_corrupt.models import load_preset
    from keras_corrupt.scoring.likelihoods import check

    model = load_preset(preset, system=system)
    try:
        check(model)
    except ValueError as error:
        raise ValueError(f"--preset {preset}: {error}") from error
    return model


@command("Run the same command again: it begins anew.")
def main(prog: str = "python -m keras_corrupt.scoring") -> None:
    """Runs the command line of `prog`, the name of the program."""
    with standard_output():
        tyro.extras.subcommand_cli_from_dict(
            {
                "highlight": highlight,
                "score": score,
                "pll": pll,
                "rescore": rescore,
                "blimp": blimp,
            },
            prog=prog,
            use_underscores=True,
        )


if __name__ == "__main__":
    main()
