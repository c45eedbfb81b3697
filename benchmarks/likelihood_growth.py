"""How the worth of likelihoods changes while systems train.

    python -m benchmarks.equal_compute DATA --output RUNS --systems Electric \\
        --keep_presets
    python -m benchmarks.likelihood_growth RUNS/Electric --n_best LISTS.json.xz \\
        --blimp BLIMP_DIR --output RESULTS

What `likelihoods` says of a system in the end, this says of each preset that its run
has kept: word error rates of re-ranked hypotheses, and minimal pairs judged right.
"""

import dataclasses
from pathlib import Path

import numpy as np
import tyro

from benchmarks import comparison, likelihoods
from keras_corrupt import scoring


@dataclasses.dataclass(kw_only=True)
class Settings(likelihoods.Settings):
    """What to measure."""

    runs: tyro.conf.Positional[tuple[str, ...]]
    """Directories of runs that have kept presets."""
    presets: tyro.conf.Suppress[tuple[str, ...]] = ()


def worth_of(run, preset, lists, pairs, settings):
    """Returns what a preset's likelihoods are worth, a dict."""
    hypotheses = [text for n_best in lists for text in n_best.texts]
    sentences = [pair.good for pair in pairs] + [pair.bad for pair in pairs]
    ends = np.cumsum([len(n_best.texts) for n_best in lists])[:-1]
    kept = dataclasses.replace(settings, output=str(Path(settings.output, run.name)))
    Path(kept.output).mkdir(parents=True, exist_ok=True)
    logs, judged, _ = likelihoods.likelihoods_of(preset, hypotheses, sentences, kept)
    result = scoring.rerank(lists, np.split(logs, ends))
    middle, low, high = likelihoods.change(lists, result.chosen)
    return {
        "lambda": round(float(result.weight), 2),
        "best": round(100 * result.best[1], 3),
        "reranked": round(100 * result.reranked[1], 3),
        "change": round(100 * middle, 3),
        "low": round(100 * low, 3),
        "high": round(100 * high, 3),
        "pairs": round(100 * scoring.accuracies(pairs, judged)[2]["all"], 1),
    }


def main(settings):
    lists = scoring.read_n_best(settings.n_best, settings.parts)
    pairs = scoring.read_pairs([settings.blimp])
    rows, output = [], Path(settings.output)
    for run, step, preset in comparison.kept_presets(settings.runs):
        worth = worth_of(run, preset, lists, pairs, settings)
        rows.append({"run": run.name, "step": step, **worth})
        print(rows[-1], flush=True)
    comparison.write_rows(rows, output / "likelihood_growth.csv")
    draw(rows, output / "likelihood_growth.png")


def draw(rows, path):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    errors, pairs = figure.subplots(1, 2)
    for name in dict.fromkeys(row["run"] for row in rows):
        run = [row for row in rows if row["run"] == name]
        x = [row["step"] / run[-1]["step"] for row in run]
        errors.plot(x, [row["change"] for row in run], label=name)
        low, high = ([row[key] for row in run] for key in ("low", "high"))
        errors.fill_between(x, low, high, alpha=0.2)
        pairs.plot(x, [row["pairs"] for row in run], label=name)
    errors.axhline(0, color="gray", linestyle=":")
    errors.set(title="change of the word error rate, 95% interval (%)")
    pairs.axhline(50, color="gray", linestyle=":")
    pairs.set(title="minimal pairs judged right (%)")
    for axis in (errors, pairs):
        axis.set(xlabel="part of the run's FLOPs")
        axis.grid(alpha=0.3)
        axis.legend()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__, use_underscores=True))
