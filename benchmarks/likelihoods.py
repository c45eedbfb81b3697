"""What the likelihoods of trained systems are worth, and how fast they come.

    python -m benchmarks.likelihoods --presets RUNS/*/preset --n_best LISTS.json.xz \\
        --blimp BLIMP_DIR --output RESULTS

Each re-ranks a recogniser's hypotheses, as `python -m keras_corrupt.scoring rescore`
does (lambda chosen on one half of the utterances, word error rate of the other; Clark's
thesis, 5.4.5), and judges minimal pairs, as `blimp` does. The errors' difference to the
recogniser's best is given with the 95% interval of a paired bootstrap of utterances.
Likelihoods are kept in `--output`, so that the same command with other `--parts` of the
recogniser's score, such as all but its language model, takes seconds.
"""

import dataclasses
import time
from pathlib import Path

import numpy as np
import tyro

from benchmarks.machine import description
from keras_corrupt import scoring
from keras_corrupt.evaluation.similarity import name_of
from keras_corrupt.models import load_preset
from keras_corrupt.scoring.reranking import word_errors


@dataclasses.dataclass
class Settings:
    """What to measure."""

    presets: tuple[str, ...]
    """Presets' directories; a run's is known by the run."""
    n_best: str
    """A recogniser's n-best lists."""
    blimp: str
    """A folder of minimal pairs."""
    output: str
    """Directory for the table and the plot."""
    parts: tuple[tuple[str, float], ...] = (("score", 1.0),)
    """What makes the recogniser's score: see the command `rescore`."""
    max_length: int | None = None
    """Tokens of a window, as in pretraining; as many as the models can if not given."""
    batch_size: int = 64
    """Texts that are read at once."""


def likelihoods_of(preset, hypotheses, sentences, settings):
    """Scores texts, or reads what was scored before.

    Returns:
        The hypotheses' scores; the sentences'; and how many hypotheses are scored in a
        second, with the time of compiling.
    """
    path = Path(settings.output, f"{name_of(preset)}.npz")
    made_of = f"{Path(preset).resolve()}, windows of {settings.max_length}"
    if not path.exists():
        options = {"batch_size": settings.batch_size, "max_length": settings.max_length}
        model = load_preset(preset)
        start = time.perf_counter()
        scores = scoring.score_sentences(model, hypotheses, **options)
        rate = len(hypotheses) / (time.perf_counter() - start)
        judged = scoring.score_sentences(model, sentences, **options)
        np.savez(path, hypotheses=scores, sentences=judged, rate=rate, made_of=made_of)
    with np.load(path) as kept:
        if str(kept["made_of"]) != made_of:
            raise SystemExit(
                f"{path} has likelihoods of {kept['made_of']}, not of {made_of}. Give "
                "another --output, or delete the file."
            )
        return kept["hypotheses"], kept["sentences"], float(kept["rate"])


def change(lists, chosen, draws=10_000):
    """Returns the second half's change of the word error rate, and its 95% interval.

    >>> lists = [scoring.NBest("a b", ["a c", "a b"], np.array([-1.0, -2.0]))] * 4
    >>> change(lists, [1, 1, 1, 1])
    (-0.5, -0.5, -0.5)
    """
    rest = list(zip(lists, chosen, strict=True))[len(lists) // 2 :]
    words = np.array([len(n_best.reference.split()) for n_best, _ in rest])
    errors = np.array(
        [
            word_errors(n_best.texts[number], n_best.reference)
            - word_errors(n_best.texts[n_best.scores.argmax()], n_best.reference)
            for n_best, number in rest
        ]
    )
    drawn = np.random.default_rng(0).integers(0, len(rest), (draws, len(rest)))
    rates = errors[drawn].sum(axis=1) / words[drawn].sum(axis=1)
    low, high = np.quantile(rates, (0.025, 0.975))
    return float(errors.sum() / words.sum()), float(low), float(high)


def draw(columns, path):
    """Draws error rates over lambda, and accuracies by field, of name -> results."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for number, (name, (result, _, accuracies, _)) in enumerate(columns.items()):
        curve = {0.0: result.best[0], **result.curve}
        left.plot(curve.keys(), [100 * rate for rate in curve.values()], label=name)
        fields = accuracies[1]
        places = np.arange(len(fields)) + 0.8 * number / len(columns)
        shares = [100 * share for share in fields.values()]
        right.bar(places, shares, 0.8 / len(columns), align="edge", label=name)
    left.set(xlabel="lambda", ylabel="word error rate, first half (%)")
    right.set_xticks(np.arange(len(fields)) + 0.4, fields, rotation=15, ha="right")
    right.set(ylabel="minimal pairs judged right (%)")
    right.axhline(50, color="gray", linestyle=":")
    for axis in (left, right):
        axis.grid(alpha=0.3)
        axis.legend()
    figure.savefig(path, dpi=110)


def percent(share):
    """Writes a share, such as 0.0166, in percent: 1.66."""
    return f"{100 * share:.2f}"


def table(columns):
    """Returns the results in Markdown."""
    results, changes, accuracies, rates = zip(*columns.values(), strict=True)
    rows = {
        "": columns,
        "---": ["---:"] * len(columns),
        "recogniser's best, word error rate (%)": [percent(r.best[1]) for r in results],
        "oracle": [percent(r.oracle[1]) for r in results],
        "re-ranked": [percent(r.reranked[1]) for r in results],
        "lambda": [f"{r.weight:.2f}" for r in results],
        "change, 95% interval": [
            f"{percent(middle)} ({percent(low)} to {percent(high)})"
            for middle, low, high in changes
        ],
        "hypotheses/s": [f"{rate:,.0f}" for rate in rates],
    }
    for kind in (2, 1, 0):  # all pairs, fields, paradigms
        for name in accuracies[0][kind]:
            shares = [f"{100 * tables[kind][name]:.1f}" for tables in accuracies]
            rows[f"pairs: {name} (%)"] = shares
    return "\n".join(
        f"| {' | '.join([name, *cells])} |" for name, cells in rows.items()
    )


def main(settings):
    lists = scoring.read_n_best(settings.n_best, settings.parts)
    pairs = scoring.read_pairs([settings.blimp])
    hypotheses = [text for n_best in lists for text in n_best.texts]
    sentences = [pair.good for pair in pairs] + [pair.bad for pair in pairs]
    ends = np.cumsum([len(n_best.texts) for n_best in lists])[:-1]
    output, columns = Path(settings.output), {}
    output.mkdir(parents=True, exist_ok=True)
    for preset in settings.presets:
        logs, judged, rate = likelihoods_of(preset, hypotheses, sentences, settings)
        result = scoring.rerank(lists, np.split(logs, ends))
        accuracies = scoring.accuracies(pairs, judged)
        changed = change(lists, result.chosen)
        columns[name_of(preset)] = result, changed, accuracies, rate
    text = f"{description()}\n\n{table(columns)}\n"
    (output / "likelihoods.md").write_text(text)
    draw(columns, output / "likelihoods.png")
    print(text)


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__, use_underscores=True))
