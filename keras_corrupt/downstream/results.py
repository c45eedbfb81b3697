"""What fine-tuning runs come to: ensembles, a table, learning curves."""

import dataclasses
import json
import statistics
from pathlib import Path

import numpy as np

from keras_corrupt.files.whole import write_whole


def ensemble(finetuner, results, count):
    """Lets the best runs of a task predict together: their outputs' mean.

    Clark's thesis, 5.2.4 (the best 10 of 30). Choosing the runs by the development
    set flatters the score on it.

    Args:
        finetuner: The task's `Finetuner`.
        results: The results of its runs.
        count: How many of them to use.

    Returns:
        Split name -> metrics. The predictions are in the runs' folder, in `ensemble/`.
    """
    best = sorted(results, key=lambda result: -result["score"])[:count]
    folder = Path(best[0]["folder"])
    archives = [
        np.load(folder / f"seed-{result['settings']['seed']}.npz") for result in best
    ]
    model = finetuner.new_model()
    outputs = {}
    for name, features in finetuner.features.items():
        keys = [key for key in archives[0].files if key.startswith(f"{name}/")]
        mean = {
            key.split("/")[1]: np.mean([archive[key] for archive in archives], axis=0)
            for key in keys
        }
        outputs[name] = [
            {key: array[i] for key, array in mean.items()} for i in range(len(features))
        ]
    development = finetuner.splits[finetuner.dev]
    model.calibrate(outputs[finetuner.dev], development.labels)
    finetuner.write_predictions(model, outputs, folder / "ensemble")
    return {
        name: finetuner.metrics(model, name, rows)
        for name, rows in outputs.items()
        if finetuner.splits[name].labels is not None
    }


def stacked(rows):
    """Returns the arrays of all rows as one array each, padded with zeros."""
    arrays = {}
    for key in rows[0] if rows else ():
        values = [np.asarray(row[key]) for row in rows]
        shape = np.max([value.shape for value in values], axis=0, initial=0)
        arrays[key] = np.zeros((len(values), *shape.astype(int)), values[0].dtype)
        for i, value in enumerate(values):
            arrays[key][(i, *map(slice, value.shape))] = value
    return arrays


@dataclasses.dataclass
class Row:
    """A line of the results: a task, its runs, and what others reached.

    Attributes:
        task: Its name.
        results: One dict for each run.
        guess: The main metric of guessing.
        ensemble: The main metric of the ensemble, or `None`.
        published: System -> its published score.
    """

    task: str
    results: list
    guess: float
    ensemble: float | None = None
    published: dict = dataclasses.field(default_factory=dict)


def table(rows):
    """Returns a Markdown table: the median of each task's runs, and their spread.

    The last column has the medians of what else was measured.
    """
    published = list(dict.fromkeys(name for row in rows for name in row.published))
    ensembles = any(row.ensemble is not None for row in rows)
    header = ["task", "metric", "guess", "median", "least to most", "runs"]
    header += ["ensemble"] * ensembles + published + ["other metrics"]
    lines = [header, ["---"] * 2 + ["---:"] * (len(header) - 3) + ["---"]]
    for row in rows:
        scores = [result["score"] for result in row.results]
        failed = sum(result["failed"] for result in row.results)
        lines.append(
            [
                row.task,
                row.results[0]["metric"],
                f"{row.guess:.1f}",
                f"{statistics.median(scores):.1f}",
                f"{min(scores):.1f} to {max(scores):.1f}",
                f"{len(scores)}" + (f" ({failed} failed)" if failed else ""),
                *([_number(row.ensemble)] if ensembles else []),
                *(_number(row.published.get(name)) for name in published),
                _others(row.results),
            ]
        )
    if len(rows) > 1:
        medians = [statistics.median(r["score"] for r in row.results) for row in rows]
        average = ["average", "", "", f"{statistics.mean(medians):.1f}", "", ""]
        average += [""] * ensembles
        for name in published:
            scores = [row.published.get(name) for row in rows]
            average.append("" if None in scores else f"{statistics.mean(scores):.1f}")
        lines.append([*average, ""])
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _others(results):
    """Returns the medians of all metrics but the main one on the development set."""
    metrics, main = results[0]["metrics"], results[0]["metric"]
    dev = next(name for name in metrics if name.startswith("dev"))
    texts = []
    for split in metrics:
        for name in metrics[split]:
            if (split, name) == (dev, main):
                continue
            median = statistics.median(r["metrics"][split][name] for r in results)
            where = "" if split == dev else f"{split} "
            texts.append(f"{where}{name} {median:.1f}")
    return ", ".join(texts)


def _number(value):
    return "" if value is None else f"{value:.1f}"


def draw_curves(rows, path):
    """Draws the score after each epoch: a panel for each task, a line for each run."""
    from matplotlib.figure import Figure

    columns = min(4, len(rows))
    lines = -(-len(rows) // columns)
    figure = Figure(figsize=(4 * columns, 3 * lines), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False).flat
    for row, axis in zip(rows, axes, strict=False):
        for result in row.results:
            metric, curve = result["metric"], result["curve"]
            axis.plot(
                [point["epoch"] for point in curve],
                [point[metric] for point in curve],
                marker="o",
                label=f"seed {result['settings']['seed']}",
            )
        axis.axhline(row.guess, color="gray", linestyle=":", label="guess")
        axis.set(title=row.task, xlabel="epoch", ylabel=metric)
        axis.grid(alpha=0.3)
        axis.legend(fontsize="small")
    for axis in list(axes):
        axis.set_axis_off()
    figure.savefig(path, dpi=110)


def write(rows, output):
    """Writes `results.md`, `results.json` and `curves.png`; returns the table."""
    output = Path(output)
    text = table(rows)
    content = [dataclasses.asdict(row) for row in rows]
    write_whole(output / "results.json", json.dumps(content, indent=2) + "\n")
    write_whole(output / "results.md", text + "\n")
    draw_curves(rows, output / "curves.png")
    return text
