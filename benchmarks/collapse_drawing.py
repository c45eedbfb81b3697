"""Draws what `benchmarks.collapse train` measured, and makes its table."""

import dataclasses
import json
import textwrap
from pathlib import Path

import numpy as np
import tyro

from keras_corrupt.models.one_state import why_dead


@dataclasses.dataclass
class Drawing:
    """What to draw."""

    files: tyro.conf.Positional[tuple[str, ...]]
    """What `train` wrote."""
    output: str
    """Directory of the table and the plots."""


def read(path):
    """Returns the settings and the rows of a file."""
    settings, *rows = map(json.loads, Path(path).read_text().splitlines())
    return settings, rows


def labels(runs):
    """Returns what each run's settings have of their own, the seed left out."""
    flat = [named_once(flattened(settings)) for settings, _ in runs]
    names = sorted({name for settings in flat for name in settings} - {"seed"})
    differ = [
        name
        for name in names
        # A network without an option has its default; other fields came later.
        if len({str(s.get(name)) for s in flat if name in s or "." in name}) > 1
    ]
    return [", ".join(f"{n} {s[n]}" for n in differ if n in s) for s in flat]


def flattened(settings, prefix=""):
    flat = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            flat |= flattened(value, "" if name == "objective" else f"{name}.")
        elif name != "last_step":
            flat[prefix + name] = value
    return flat


def named_once(settings):
    """Returns settings with one `networks.NAME` for what both networks have alike."""
    flat = dict(settings)
    for name, value in settings.items():
        network, _, own = name.partition(".")
        if network == "discriminator" and settings.get(f"generator.{own}") == value:
            flat[f"networks.{own}"] = flat.pop(name)
            del flat[f"generator.{own}"]
    return flat


def table(runs, names):
    """Returns the last row of each run in Markdown, and when it was dead."""
    lines = [
        "| settings | seed | step | MLM loss | RTD loss | AUC | spread "
        "| largest update | dead at |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, (settings, rows) in sorted(
        zip(names, runs, strict=True), key=lambda pair: (pair[0], pair[1][0]["seed"])
    ):
        last = rows[-1]
        lines.append(
            f"| {name} | {settings['seed']} | {last['step']:,} "
            f"| {last['mlm_loss']:.2f} | {last['rtd_loss']:.4f} "
            f"| {last['rtd_auc']:.3f} | {last['spread'][-1]:.4f} "
            f"| {largest_until_warm(settings, rows):.3f} | {dead_at(settings, rows)} |"
        )
    return "\n".join(lines)


def largest_until_warm(settings, rows):
    """Returns the largest relative update that was measured during the warm-up."""
    warm = [row for row in rows if row["step"] <= settings["warmup_steps"]]
    return max(row.get("largest_update", 0.0) for row in warm)


def dead_at(settings, rows):
    """Returns the first step after the warm-up at which a run was dead, as text."""
    for row in rows:
        judged = row["step"] >= settings["warmup_steps"]
        if judged and why_dead(row["spread"][-1], row["rtd_auc"]):
            return f"{row['step']:,}"
    return ""


#: Title of a panel -> what it shows of a row, and whether on a logarithmic scale.
PANELS = {
    "replaced token detection AUC": (lambda row: row["rtd_auc"], False),
    "spread of the last layer": (lambda row: max(row["spread"][-1], 1e-6), True),
    "gradient norm: RTD, discriminator": (
        lambda row: row["gradient_norms"]["rtd"]["discriminator"],
        True,
    ),
    "gradient norm: RTD, shared": (
        lambda row: row["gradient_norms"]["rtd"]["shared"],
        True,
    ),
    "gradient norm: MLM, shared": (
        lambda row: row["gradient_norms"]["mlm"]["shared"],
        True,
    ),
    "largest relative update": (lambda row: row.get("largest_update", np.nan), True),
}


def draw_curves(runs, names, path):
    """Draws a curve for each run; runs that differ in the seed have one colour."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 8), layout="constrained")
    colors = {name: f"C{i}" for i, name in enumerate(dict.fromkeys(names))}
    for axis, (title, (of_row, logarithmic)) in zip(
        figure.subplots(2, 3).flat, PANELS.items(), strict=True
    ):
        drawn = set()
        for name, (_, rows) in zip(names, runs, strict=True):
            label = None if name in drawn else name
            steps = [row["step"] for row in rows]
            values = [of_row(row) for row in rows]
            axis.plot(steps, values, color=colors[name], alpha=0.7, label=label)
            drawn.add(name)
        axis.set(title=title, xlabel="step", yscale="log" if logarithmic else "linear")
        axis.grid(alpha=0.3)
    figure.legend(
        *figure.axes[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=2,
        fontsize="x-small",
    )
    figure.savefig(path, dpi=100)


def draw_layers(runs, names, path):
    """Draws the spread of each layer over the steps, a map for each run."""
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    columns = min(4, len(runs))
    rows = -(-len(runs) // columns)
    size = 3.5 * columns + 1, 2.5 * rows + 0.4
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis in axes.flat[len(runs) :]:
        axis.set_axis_off()
    for axis, name, (settings, measured) in zip(axes.flat, names, runs, strict=False):
        steps = [row["step"] for row in measured]
        spreads = np.array([row["spread"] for row in measured]).T
        layers = np.arange(1, len(spreads) + 1)
        image = axis.pcolormesh(
            steps, layers, np.maximum(spreads, 1e-4), norm=LogNorm(1e-4, 1)
        )
        title = textwrap.fill(f"{name}, seed {settings['seed']}", 50)
        axis.set_title(title, fontsize="x-small")
        axis.set(xlabel="step", ylabel="layer")
    figure.colorbar(image, ax=axes, label="spread")
    figure.savefig(path, dpi=90)


def draw(drawing):
    """Draws the runs and writes the table."""
    runs = [read(path) for path in drawing.files]
    names = labels(runs)
    output = Path(drawing.output)
    output.mkdir(parents=True, exist_ok=True)
    draw_curves(runs, names, output / "curves.png")
    draw_layers(runs, names, output / "layers.png")
    (output / "table.md").write_text(table(runs, names) + "\n")
    print(table(runs, names))
