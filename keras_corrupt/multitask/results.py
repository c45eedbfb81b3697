"""What the runs come to: a table as the thesis's 3.1, and how sure differences are."""

import json
import statistics
from pathlib import Path

from keras_corrupt.files.whole import write_whole
from keras_corrupt.multitask.significance import bootstrap, holm, mann_whitney

AVERAGE = "average"
#: What a strategy must be better than for its stars.
BASELINES = ("single", "multi")
#: What the others' averages are compared with, as in tables 3.3 and 3.4.
REFERENCE = "single_to_multi"


def scores_of(results):
    """Returns task -> the scores of its runs.

    Args:
        results: Folder -> the results of a strategy's runs.
    """
    return {
        task: [run["scores"][task] for run in runs]
        for runs in results.values()
        for task in runs[0]["scores"]
    }


def speed_of(results):
    """Returns how many sequences a second were trained on: all over all seconds."""
    runs = [run for runs in results.values() for run in runs]
    seconds = [run["train_seconds"] for run in runs]
    sequences = [
        run["sequences_per_second"] * s for run, s in zip(runs, seconds, strict=True)
    ]
    return sum(sequences) / sum(seconds)


def with_average(all_scores):
    """Adds the mean over tasks, seed by seed: strategy -> column -> scores."""
    return {
        name: {
            AVERAGE: [
                statistics.mean(scores) for scores in zip(*tasks.values(), strict=True)
            ],
            **tasks,
        }
        for name, tasks in all_scores.items()
    }


def stars(all_scores):
    """Returns (strategy, column) -> the stars of table 3.1.

    One, two or three stars mean that the strategy is better than both `single` and
    `multi` with p below 0.05, 0.01 and 0.001: bootstrap tests, with the correction of
    Holm for all cells of the table.

    Args:
        all_scores: What `with_average` returned.
    """
    baselines = [name for name in BASELINES if name in all_scores]
    cells = [
        (name, column)
        for name in all_scores
        for column in all_scores[name]
        if name not in BASELINES and baselines
    ]
    p_values = []
    for name, column in cells:
        scores = all_scores[name][column]
        others = [all_scores[baseline][column] for baseline in baselines]
        better = all(statistics.mean(scores) > statistics.mean(x) for x in others)
        p_values.append(max(bootstrap(scores, x) for x in others) if better else 1.0)
    return {
        cell: "*" * sum(p < limit for limit in (0.05, 0.01, 0.001))
        for cell, p in zip(cells, holm(p_values), strict=True)
    }


def table(all_scores, metrics):
    """Returns a Markdown table: the median of each strategy's runs, and their spread.

    Args:
        all_scores: What `with_average` returned.
        metrics: Task -> the name of its metric.
    """
    marks = stars(all_scores)
    columns = list(next(iter(all_scores.values())))
    titles = [f"{c} ({metrics[c]})" if c in metrics else c for c in columns]
    lines = [["strategy", *titles, "runs"], ["---", *["---:"] * (len(columns) + 1)]]
    for name, scores in all_scores.items():
        cells = [
            f"{statistics.median(scores[c]):.1f}{marks.get((name, c), '')} "
            f"({min(scores[c]):.1f} to {max(scores[c]):.1f})"
            for c in columns
        ]
        lines.append([name, *cells, str(len(scores[AVERAGE]))])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def comparison(all_scores):
    """Returns a Markdown table of averages beside `single_to_multi`'s average.

    Mann-Whitney U tests, with the correction of Holm. Empty without that strategy.
    """
    others = [name for name in all_scores if name != REFERENCE]
    if REFERENCE not in all_scores or not others:
        return ""
    reference = all_scores[REFERENCE][AVERAGE]
    p_values = [mann_whitney(all_scores[name][AVERAGE], reference) for name in others]
    lines = [f"| average | beside {REFERENCE} | p |", "| --- | ---: | ---: |"]
    for name, p in zip(others, holm(p_values), strict=True):
        median = statistics.median(all_scores[name][AVERAGE])
        difference = median - statistics.median(reference)
        lines.append(f"| {name} | {difference:+.1f} | {p:.3f} |")
    return "\n".join(lines)


def draw(all_scores, path):
    """Draws every run's score and their median, strategy by strategy.

    Args:
        all_scores: What `with_average` returned.
        path: File to write.
    """
    from matplotlib.figure import Figure

    columns = list(next(iter(all_scores.values())))
    figure = Figure(figsize=(2.4 * len(columns), 3.5), layout="constrained")
    axes = figure.subplots(1, len(columns), squeeze=False)[0]
    for axis, column in zip(axes, columns, strict=True):
        for place, scores in enumerate(all_scores.values()):
            runs = scores[column]
            axis.plot([place] * len(runs), runs, "o", alpha=0.6)
            axis.plot(place, statistics.median(runs), "k_", markersize=16)
        axis.set_xticks(
            range(len(all_scores)), list(all_scores), rotation=60, ha="right"
        )
        axis.set_title(column)
        axis.grid(axis="y", alpha=0.3)
    axes[0].set_ylabel("score, development set")
    figure.savefig(path, dpi=110)


def write(all_scores, speeds, finetuners, output):
    """Writes `results.md`, `.json` and `.png`; returns the tables.

    Args:
        all_scores: Strategy -> task -> the scores of its runs.
        speeds: Strategy -> sequences a second in training.
        finetuners: Task -> its `Finetuner`.
        output: Where to.
    """
    metrics = {name: f.task.main_metric for name, f in finetuners.items()}
    whole = with_average(all_scores)
    text = (
        "Median of the runs (least to most), development sets. Stars: better than "
        "single and multi, p < 0.05, 0.01, 0.001 (bootstrap, Holm).\n\n"
        + table(whole, metrics)
    )
    if more := comparison(whole):
        text += f"\n\nMann-Whitney U tests, Holm:\n\n{more}"
    guesses = {name: f.guess for name, f in finetuners.items()}
    text += "\n\nGuessing reaches " + ", ".join(
        f"{name} {guess:.1f}" for name, guess in guesses.items()
    )
    text += "\nTraining read, of sequences a second, " + ", ".join(
        f"{name} {speed:.0f}" for name, speed in speeds.items()
    )
    content = {
        "scores": all_scores,
        "metrics": metrics,
        "guesses": guesses,
        "sequences_per_second": speeds,
    }
    write_whole(Path(output) / "results.json", json.dumps(content, indent=2) + "\n")
    write_whole(Path(output) / "results.md", text + "\n")
    draw(whole, Path(output) / "results.png")
    return text
